// Package lifecycle decides what becomes of slices, attempts, pools, jobs and
// declarations: [Conclude] takes a snapshot and returns a [Conclusion]. Inside, each is
// a type that holds the one before it: [Slices], [Attempts], [PoolUpkeep], [Jobs],
// [Declarations].
//
// It does not choose who is placed next or who makes room; that is plan/schedule's.
// Start with conclusion.go, then job.go for the life of a job and slices.go for that of
// a slice.
package lifecycle
