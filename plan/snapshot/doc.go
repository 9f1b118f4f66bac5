// Package snapshot is what the decisions of one plan are made on. [Take] returns a
// [Snapshot] of what was declared, recorded and observed, with the readings set aside
// that a single list does not prove, so that no slice is taken for gone because one list
// leaves it out. A Snapshot does not change: a stage of the plan changes a private
// [Snapshot.Draft], and its result is another Snapshot.
//
// It knows neither where a slice may go nor what becomes of it: that is for
// plan/capacity and plan/lifecycle, whose types hold a draft. Start with take.go, then
// doubt.go for how a reading is doubted.
package snapshot
