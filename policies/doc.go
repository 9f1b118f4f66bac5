// Package policies holds plans to policies: it finds those of a stack's directory, of sets
// and of --policy-dir, gives them the plan as a value, and has their findings judged.
//
// The language of rules is lang/policyfile's, and the decisions are plan/policy's.
//
// Start with [Load] and [Policies.Judge].
package policies
