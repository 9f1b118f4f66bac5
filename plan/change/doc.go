// Package change compares what is declared with what is recorded: attributes
// that differ and what each causes, lifecycle rules that ignore or trigger, why
// something changes, outputs, costs, and what happened between two documents as
// events for people.
//
// It decides nothing about slices, attempts or capacity; what becomes of a job
// is plan/lifecycle's. Start with change.go for attributes, causes.go for the
// reasons that people read, event.go for events.
package change
