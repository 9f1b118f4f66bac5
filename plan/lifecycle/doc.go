// Package lifecycle decides what becomes of slices, attempts, pools, jobs and
// declarations, each in a type that holds the one before it: [Slices], [Attempts],
// [PoolUpkeep], [Jobs], [Declarations].
//
// It does not choose who is placed next or who makes room; that is plan/schedule's.
// Start with job.go for the life of a job and slices.go for that of a slice.
package lifecycle
