package host

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// actor is a name under which an object can be called.
type actor struct {
	name, incarnation string
	class             *class
	object            *object
	methods           map[*method]*bound
	options           Options
	gone              atomic.Bool

	pending       atomic.Int64
	calls, errors atomic.Uint64
}

// object is a value with its mailboxes; names that share it share them.
type object struct {
	value reflect.Value
	names int
	boxes map[string]*mailbox // by concurrency group; "" is its own
}

// bound is a method of an actor.
type bound struct {
	*method
	function reflect.Value
	box      *mailbox
	names    []string // of the parameters
	options  MethodOptions
	series   series
}

// newIncarnation is unique.
func newIncarnation() string { return "actor-" + strings.ToLower(rand.Text()) }

// newActor makes an actor of an object. Its series are to be added.
func newActor(name string, o *object, c *class, options Options) (*actor, error) {
	a := &actor{name: name, incarnation: newIncarnation(), class: c, object: o, methods: map[*method]*bound{}, options: options}
	for _, m := range c.methods {
		a.methods[m] = &bound{method: m, function: o.value.Method(m.index), box: o.boxes[""]}
	}
	for called, mo := range options.Methods {
		m := cmp.Or(c.methods[called], c.goNames[called])
		if m == nil {
			return nil, fmt.Errorf("options are given for method %q, and %s has none that can be called so", called, c.name)
		}
		if len(mo.Params) > 0 && (m.variadic || len(mo.Params) != len(m.params)) {
			return nil, fmt.Errorf("method %q has %s and %d names for them", called, counted(len(m.params), "parameter"), len(mo.Params))
		}
		b := a.methods[m]
		b.box, b.names, b.options = o.boxes[mo.Group], mo.Params, mo
	}
	return a, nil
}

func newObject(value reflect.Value, options Options) *object {
	o := &object{value: value, boxes: map[string]*mailbox{"": {maxConcurrency: max(1, options.MaxConcurrency)}}}
	for name, n := range options.Groups {
		o.boxes[name] = &mailbox{maxConcurrency: n}
	}
	return o
}

// fits returns why options cannot be those of one more name of the object.
func (o *object) fits(options Options) error {
	limits := map[string]int{"": max(1, options.MaxConcurrency)}
	maps.Copy(limits, options.Groups)
	for name, box := range o.boxes {
		if limits[name] != box.maxConcurrency {
			return errors.New("the object is registered under another name with another concurrency; give the same")
		}
	}
	if len(limits) != len(o.boxes) {
		return errors.New("the object is registered under another name with other concurrency groups; give the same")
	}
	return nil
}

// identity is what two names of one object have in common, nil for values that
// are copied.
func identity(v reflect.Value) any {
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 {
		return nil
	}
	return v.Interface()
}

// find is the method of a name.
func (a *actor) find(name string) (*bound, *rpcerror.Error) {
	m, err := a.class.find(name)
	if err != nil {
		return nil, err
	}
	return a.methods[m], nil
}

// list describes the methods, by name.
func (a *actor) list() []*wire.Method {
	var out []*wire.Method
	for _, name := range slices.Sorted(maps.Keys(a.class.methods)) {
		b := a.methods[a.class.methods[name]]
		params := b.names
		if len(params) == 0 {
			params = make([]string, len(b.params))
		}
		out = append(out, &wire.Method{
			Name: name, Signature: b.signature, Doc: b.options.Doc, Idempotent: b.options.Idempotent,
			ConcurrencyGroup: b.options.Group, Params: params, Retries: uint32(b.options.Retries), RetryExceptions: b.options.RetryErrors,
			Streams: b.streams,
		})
	}
	return out
}

func (a *actor) describe() *wire.Actor {
	return &wire.Actor{
		Name: a.name, Incarnation: a.incarnation, Class: a.class.name,
		Pending: uint32(max(0, a.pending.Load())), Calls: a.calls.Load(), Errors: a.errors.Load(),
	}
}

// discard answers the calls of this name that wait.
func (a *actor) discard(e func() *rpcerror.Error) {
	for _, box := range a.object.boxes {
		for _, c := range box.snapshot() {
			if c.actor == a {
				c.stopWaiting(e())
			}
		}
	}
}
