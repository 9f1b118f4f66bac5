package actorrpc

import "github.com/fray-ml/fray/actorrpc/codec"

// Handle is an actor to be called, by its name: wherever it runs now, and after it
// was restarted. Handles of one client are equal (==) if they are of the same
// actor and have the same options. As an argument or a result of a call it
// travels as a reference, see [Client.Handle].
type Handle struct {
	client  *Client
	actor   *actor
	options RPCOptions
}

var _ codec.Referrer = Handle{}

// Name is the actor's name.
func (h Handle) Name() string {
	if h.actor == nil {
		return ""
	}
	return h.actor.key.name
}

// With is the handle with other options; what they leave out stays.
func (h Handle) With(o RPCOptions) Handle {
	h.options = o.withDefaults(h.options)
	return h
}

// ActorRef is what the handle is on its way: the name, where the namespace's
// resolver knows it, and of a handle of one of several the member; else where the
// actor is.
func (h Handle) ActorRef() codec.ActorRef {
	if h.actor == nil {
		return codec.ActorRef{}
	}
	key := h.actor.key
	ref := codec.ActorRef{Name: key.name, Namespace: key.namespace, URL: key.url}
	if ref.Namespace != "" {
		ref.Member = key.member
	}
	if ref.URL != "" || ref.Namespace != "" && key.member == "" {
		return ref
	}
	h.actor.mu.Lock()
	defer h.actor.mu.Unlock()
	if h.actor.lastResolved.Address != "" {
		ref.URL = h.actor.lastResolved.URL()
	}
	return ref
}

// String is the actor's name, and where it is if it is only there.
func (h Handle) String() string {
	ref := h.ActorRef()
	if ref.URL == "" {
		return ref.Name
	}
	return ref.Name + " at " + ref.URL
}

// Pending is how many calls of this process the actor has not answered.
func (h Handle) Pending() int {
	if h.actor == nil {
		return 0
	}
	return int(h.actor.load.Load())
}
