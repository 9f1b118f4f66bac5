package actorrpc

import (
	"maps"
	"time"
)

// RPCOptions configure calls. What is zero is taken from where it is more
// general: a call's options from the handle's, those from the client's.
type RPCOptions struct {
	// Timeout is for all of a call: finding the actor, sending, running, retries.
	// Negative: none, which is the default.
	Timeout time.Duration
	// Retries is how often a call that may have run is sent again after its actor
	// or the connection died. Errors that a method returns are not retried.
	// Negative: never, which is the default.
	Retries int
	// Idempotent declares that running the method more than once does no harm: a call
	// that may have run is sent again until its deadline.
	Idempotent bool
	// StreamWindow is how many items of a stream its method may be ahead of the loop that
	// takes them; 0: 1,000. It is at most 8 MiB of them ahead in any case, or one item.
	StreamWindow int
}

// withDefaults are the options with what is missing taken from base.
func (o RPCOptions) withDefaults(base RPCOptions) RPCOptions {
	if o.Timeout == 0 {
		o.Timeout = base.Timeout
	}
	if o.Retries == 0 {
		o.Retries = base.Retries
	}
	o.Idempotent = o.Idempotent || base.Idempotent
	if o.StreamWindow == 0 {
		o.StreamWindow = base.StreamWindow
	}
	return o
}

// Named are arguments by name, for actors whose language has them. It stands
// anywhere among the arguments of a call.
type Named map[string]any

// arguments are what was given to a call, by kind.
type arguments struct {
	positional []any
	named      map[string]any
	options    RPCOptions
}

func argumentsOf(given []any, base RPCOptions) arguments {
	a := arguments{options: base}
	for i, v := range given {
		switch v := v.(type) {
		case Named:
			a.positional = a.before(given, i)
			if a.named == nil {
				a.named = map[string]any{}
			}
			maps.Copy(a.named, v)
		case RPCOptions:
			a.positional = a.before(given, i)
			a.options = v.withDefaults(a.options)
		default:
			if a.positional != nil {
				a.positional = append(a.positional, v)
			}
		}
	}
	if a.positional == nil {
		a.positional = given
	}
	return a
}

// before are the positional arguments up to one that is not, in a list of their own from there on.
func (a *arguments) before(given []any, i int) []any {
	if a.positional != nil {
		return a.positional
	}
	return append(make([]any, 0, len(given)), given[:i]...)
}
