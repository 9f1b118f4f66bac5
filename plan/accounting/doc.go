// Package accounting decides what the time of slices is counted as: who used it, for what,
// and at which price. From one document to the next it closes and opens intervals ([Meter]),
// merges those of a ledger so that none counts twice ([Merge]), sums them up by what is asked
// for ([Summarize]), and finds how budgets of money stand ([Budgets]).
//
// It stores nothing: the ledger is kept by apply.
//
// Start with [Meter].
package accounting
