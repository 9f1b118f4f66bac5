package actorrpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/internal/callchain"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// maxSends bounds how often a call is sent again after a connection broke: one that
// breaks it every time must end.
const maxSends = 16

// request is what a caller asked for. It does not change once the call is made.
type request struct {
	name     string // of the actor
	method   string
	codec    codec.Kind
	args     []byte
	buffers  [][]byte
	bytes    uint64 // of args and buffers
	trace    string // W3C traceparent of the caller's span, ""
	options  RPCOptions
	deadline time.Time       // zero: none
	made     callchain.Run   // the run that made it; nil: none, or it waits
	waiters  []callchain.Run // the runs that wait for the answer
}

// named is an error with the call's names where it has none.
func (r *request) named(err *rpcerror.Error) *rpcerror.Error {
	named := *err
	named.Actor, named.Method = cmp.Or(named.Actor, r.name), cmp.Or(named.Method, r.method)
	return &named
}

// measure rejects a call that is larger than this side allows, or whose names no frame carries.
func (r *request) measure(limit uint64) *rpcerror.Error {
	switch {
	case !utf8.ValidString(r.name):
		return r.named(rpcerror.UnknownActorOf(r.name, nil))
	case !utf8.ValidString(r.method):
		return r.named(&rpcerror.Error{Code: rpcerror.CodeUnknownMethod, Message: fmt.Sprintf("no method %q", r.method)})
	}
	r.bytes = uint64(len(r.args))
	for _, b := range r.buffers {
		r.bytes += uint64(len(b))
	}
	if r.bytes+r.overhead() > limit {
		return r.named(tooLarge(r.bytes, limit))
	}
	return nil
}

// overhead is at most what a frame has beside its arguments, in bytes.
func (r *request) overhead() uint64 {
	const fields = 192
	return fields + uint64(len(r.method)+len(r.name)+10*len(r.buffers))
}

// delivery is a request and how far it is on its way to a server.
type delivery struct {
	request
	owner   owner
	locator locator // the same for all deliveries to one actor
	inbox   *inbox  // of a call that takes a stream; nil: it takes one result

	// Set by the owner before the delivery is submitted.
	endpoint resolver.Endpoint

	// Guarded by the transport.
	seq     uint64 // 0: not numbered
	attempt uint32
	sends   int
	arrived bool // may have, over a connection that broke
	silent  bool // the server was: it need not be dead
	receipt *wire.Receipt
	payload payload
}

// owner is the call that a delivery is of. Its transport reports to it what becomes of the
// delivery. ended, fail, hold and settled take no locks, so that a transport may hold its own.
type owner interface {
	// ended reports whether the call is over: nothing waits for its answer any more.
	ended() bool
	// answered takes the server's answer.
	answered(reply *wire.Reply, results [][]byte)
	// lost deals with a call that may have run, and whose answer will not come.
	lost(err *rpcerror.Error)
	// requeue has the call sent again: it surely did not run.
	requeue()
	// fail ends the call.
	fail(err *rpcerror.Error)
	// hold lets nothing be sent to the call's actor until it is settled.
	hold()
	settled()
}

// locator knows where an actor is.
type locator interface {
	// elsewhere reports whether it is sure that an endpoint is not the actor's any more.
	elsewhere(ctx context.Context, e resolver.Endpoint) bool
}

// mayHaveArrived needs the transport's lock.
func (d *delivery) mayHaveArrived() bool {
	return d.arrived || d.receipt != nil && d.receipt.MayHaveArrived()
}

// reset forgets that the call was sent.
func (d *delivery) reset() {
	d.seq, d.attempt, d.arrived, d.silent, d.receipt, d.payload = 0, 0, false, false, nil, payloadWith
}

// frame is the call as it is sent, and for how long it may still run.
func (d *delivery) frame() *wire.Call {
	f := &wire.Call{
		Actor: d.endpoint.Name, Incarnation: d.endpoint.Incarnation, Method: d.method, Seq: d.seq, Attempt: d.attempt,
		Codec: wire.Codec(d.codec), Args: d.args, Trace: d.trace,
	}
	if len(d.buffers) > 0 {
		f.BufferSizes = make([]uint64, len(d.buffers))
		for i, b := range d.buffers {
			f.BufferSizes[i] = uint64(len(b))
		}
	}
	if d.inbox != nil {
		f.Stream = d.inbox.request()
	}
	if !d.deadline.IsZero() {
		f.TimeoutNs = uint64(max(1, time.Until(d.deadline)))
	}
	return f
}

// to is where the call goes. It needs the actor's lock.
func (d *delivery) to(process string) callchain.Call {
	return callchain.Call{Process: process, Actor: d.endpoint.Name, Incarnation: d.endpoint.Incarnation, Method: d.method}
}

// behindWaiter fails a call that is about to be sent to a process, if one of the runs that wait for it
// holds it up, and reports whether.
func (d *delivery) behindWaiter(process string) bool {
	for i, r := range d.waiters {
		if r.HoldsUp(d.to(process)) {
			d.owner.fail(selfCall(d.waiters[:i+1], false))
			return true
		}
	}
	return false
}

// selfCall is the error of a call that the last of the runs holds up, and the first was to make.
func selfCall(runs []callchain.Run, sent bool) *rpcerror.Error {
	_, method := runs[len(runs)-1].Names()
	var through []string
	for _, r := range slices.Backward(runs[:len(runs)-1]) {
		actor, method := r.Names()
		through = append(through, ", through "+actor+"."+method)
	}
	text := "the actor's own " + method + " waits for it" + strings.Join(through, "") + ", and one of the two runs at a time"
	if sent {
		text += "; it begins when " + method + " has returned"
	}
	text += ": call the method of the value itself, do not wait for it, or register the actor with a MaxConcurrency of 2 or more, " +
		"or give the method a Group of its own"
	return rpcerror.SelfCall(text, sent)
}

// partition separates calls that may have arrived from those that cannot have. None of them
// is the transport's any more. It needs the transport's lock.
func partition(deliveries []*delivery) (mayHaveRun, notRun []*delivery) {
	for _, d := range deliveries {
		arrived := d.mayHaveArrived()
		d.reset()
		if d.arrived = arrived; arrived { // a caller that gives it up meanwhile is to know
			mayHaveRun = append(mayHaveRun, d)
		} else {
			notRun = append(notRun, d)
		}
	}
	return mayHaveRun, notRun
}

// maybeExecuted is the error of a call whose fate is not known.
func maybeExecuted() *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeMaybeExecuted, Message: "the connection broke after the call was sent: it may have run", Ran: true}
}

// neverWhole is the error of a call whose frame was cut each time.
func neverWhole() *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: fmt.Sprintf("%d connections broke before all of it was sent", maxSends+1)}
}

// tooLarge is the error of a call that is not sent for its size.
func tooLarge(size, limit uint64) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeTooLarge, Message: fmt.Sprintf("the arguments are %s; at most %s are taken (max_message_bytes)", sizeText(size), sizeText(limit))}
}

// sizeText is a number of bytes for people: "64 MiB", "64.1 MiB", "12 bytes".
func sizeText(n uint64) string {
	for _, unit := range []struct {
		name string
		size uint64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n < unit.size {
			continue
		}
		if n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
		tenths := n/unit.size*10 + (n%unit.size*10+unit.size-1)/unit.size // up: it is more than the limit
		return fmt.Sprintf("%d.%d %s", tenths/10, tenths%10, unit.name)
	}
	return fmt.Sprintf("%d bytes", n)
}
