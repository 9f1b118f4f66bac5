// Package apply has the effects: it observes the world, asks plan what follows,
// carries that out with bounded parallelism, and keeps the state saved.
//
// It decides nothing about jobs or slices; that is plan's. Who may call it at
// all is the lease's, and whether to go on is its caller's: `fray apply` until
// the plan is carried out, `fray watch` for ever.
//
// Start with [Stepper.Step].
package apply
