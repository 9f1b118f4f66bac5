// Package rollout carries one change out: it asks for approval, takes the lease or hands
// the change to the controller that leads, steps until the plan is settled, and reports
// how it ended. What to do is decided by plan, and made into a plan by proposal. Start
// with Rollout.Apply; run.go and extent.go have what both ways of carrying out share.
package rollout
