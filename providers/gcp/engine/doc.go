// Package engine is what the engines of the provider have in common: what is ordered,
// where a slice is, what a listing of it shows, how reads are tried again, and what an
// import finds.
//
// It leaves out the APIs; packages tpu and gce are one each. Start with [Order],
// [Place] and [Listing].
package engine
