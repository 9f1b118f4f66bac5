// Package policyfile reads files of policies (*.policy.hcl) and of their tests, and evaluates
// rules: which hold, which are violated, and which have no result.
//
// It does not know what a plan is. The caller hands it over as a value.
//
// Start with [Parse] and [Set.Evaluate].
package policyfile
