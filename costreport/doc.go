// Package costreport prints what a stack has used and cost, from its recorded history, as a
// table, as CSV and as JSON. It decides nothing: what counts as what is plan/accounting's.
// Start with Print.
package costreport
