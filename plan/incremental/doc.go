// Package incremental makes the plan of plan/reconcile again and again for one stack,
// at the cost of what goes on rather than of what is declared.
//
// It decides nothing by itself: what it returns is what [reconcile.Diff] would, which
// a property test holds. Start with [Planner]; condition.go has when a job need not be
// decided about, and turns.go when that can wait for the job's turn. The tests of all
// decisions stand here, since they plan as callers do; world_test.go is a small world to
// try a policy in.
package incremental
