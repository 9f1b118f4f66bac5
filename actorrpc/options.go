package actorrpc

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// RPCOptions configure calls. What is zero is taken from where it is more
// general: a call's options from the handle's, those from the client's.
type RPCOptions struct {
	// Timeout is for all of a call: finding the actor, sending, running, retries.
	// Negative: none, which is the default.
	Timeout time.Duration
	// Retries is how often a call is sent again that may have run when its actor or the connection
	// died, or whose method returned or raised one of RetryErrors: there is one budget for both.
	// Negative: never. The default is what the method declares, or never.
	Retries int
	// RetryErrors selects the errors of the method after which the call runs again, as often as Retries
	// allows. The default is what the method declares, or none.
	RetryErrors *ErrorFilter
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
	if o.RetryErrors == nil {
		o.RetryErrors = base.RetryErrors
	}
	o.Idempotent = o.Idempotent || base.Idempotent
	if o.StreamWindow == 0 {
		o.StreamWindow = base.StreamWindow
	}
	return o
}

// ErrorFilter selects errors that methods return or raise. The zero value selects all of them.
type ErrorFilter struct {
	// Types are the names of types, as in Error.Type. A class of Python, "ValueError" or "lessons.TooHard",
	// stands for its subclasses, too, and a type of Go, "*fs.PathError", for errors that wrap one.
	Types []string
	// Match selects of these; nil: all.
	Match func(err *rpcerror.Error) bool
}

// selects reports whether an error is one of the selected.
func (f *ErrorFilter) selects(err *rpcerror.Error) bool {
	named := func(name string) bool { return name == err.Type || slices.Contains(err.Bases, name) }
	return (len(f.Types) == 0 || slices.ContainsFunc(f.Types, named)) && (f.Match == nil || f.Match(err))
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
