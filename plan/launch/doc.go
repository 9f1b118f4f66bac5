// Package launch puts what running jobs have launched beside what files declare.
//
// It starts nothing: a launch is a record in the state, and what follows from it
// is decided like anything declared. Start with [Wanted].
package launch
