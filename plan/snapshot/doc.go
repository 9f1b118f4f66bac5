// Package snapshot is what the decisions of one plan are made on. A [Snapshot]
// has what was declared, recorded and observed, and the edits of the next state;
// [Evidence] adds how far the readings can be believed, so that no slice is taken
// for gone because one list leaves it out.
//
// It knows neither where a slice may go nor what becomes of it: that is for
// plan/capacity and plan/lifecycle, whose types hold these. Start with
// [NewSnapshot], then doubt.go for how a reading is doubted.
package snapshot
