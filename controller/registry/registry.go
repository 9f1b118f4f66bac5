// Package registry maps the names of actors to their endpoints, namespace by namespace,
// with the watchers of names, and saves the endpoints in the store. It has no clock
// and no lock: its callers pass the time and hold one. Which endpoints may register,
// and when they end, is package metadata's part.
//
// Start with [Registry]; saver.go saves, watcher.go notifies, namespace.go is the index.
package registry

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fray-ml/fray/clusterapi"
)

// Endpoint is where one incarnation of an actor listens. It is never changed:
// another one takes its place.
type Endpoint struct {
	ID        string            `json:"id"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Address   string            `json:"address"`
	JobID     string            `json:"job_id"`
	Attempt   int               `json:"attempt"`
	Task      int               `json:"task"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	At        time.Time         `json:"at"`
	Unique    bool              `json:"unique,omitempty"`
	TTL       time.Duration     `json:"ttl,omitempty"` // nanoseconds; 0: as long as its task
	Request   string            `json:"request,omitempty"`

	Expires time.Time // zero: never by itself
	Wire    *clusterapi.ActorEndpoint
}

// asSent is the endpoint as clients see it; it is made once.
func (e *Endpoint) asSent() *clusterapi.ActorEndpoint {
	return &clusterapi.ActorEndpoint{
		ActorId: e.ID, Name: e.Name, Address: e.Address, JobId: e.JobID, Namespace: e.Namespace, Metadata: e.Metadata,
		Attempt: int32(e.Attempt), Task: int32(e.Task), RegisteredAt: timestamppb.New(e.At),
	}
}

// sameBut reports whether only the time differs at which they expire.
func (e *Endpoint) sameBut(o *Endpoint) bool {
	return e.Address == o.Address && e.TTL == o.TTL && e.Unique == o.Unique && maps.Equal(e.Metadata, o.Metadata)
}

// maxEndpoints is how many endpoints one job may have.
const maxEndpoints = 10_000

// Errors of register, to be tested with errors.Is.
var (
	ErrNameTaken   = errors.New("the name is taken")
	ErrNotOwn      = errors.New("the actor is another job's")
	ErrTooMany     = errors.New("too many endpoints")
	errOtherActor  = errors.New("the actor_id is another actor's")
	errIncarnation = errors.New("the actor_id is of an attempt that has ended; register without it")
)

// Registry maps names to endpoints. It computes only: now is an argument, and its
// callers hold a lock. Changes are returned, for watchers.
type Registry struct {
	byID      map[string]*Endpoint
	byRequest map[requestKey]string          // actor ids
	byJob     map[string]map[string]struct{} // actor ids, by job id
	spaces    map[string]*space              // by namespace
	expiries  expiryHeap
	changes   uint64 // see version
}

type requestKey struct{ job, request string }

// Delta is what one change came to. What is in both was replaced.
type Delta struct {
	added, removed []*Endpoint
}

// Empty reports whether nothing changed.
func (d Delta) Empty() bool { return len(d.added)+len(d.removed) == 0 }

// New holds what was saved. Endpoints that expire have all their time again:
// they could not be renewed while no controller led.
func New(saved []*Endpoint, now time.Time) *Registry {
	r := &Registry{
		byID: map[string]*Endpoint{}, byRequest: map[requestKey]string{},
		byJob: map[string]map[string]struct{}{}, spaces: map[string]*space{},
	}
	for _, e := range saved {
		if e.TTL > 0 {
			e.Expires = now.Add(e.TTL)
		}
		r.insert(e)
	}
	return r
}

// Register makes an endpoint known, or renews one under its id. in has no At;
// an id is used only if in has none and the request is new.
func (r *Registry) Register(in Endpoint, id string, now time.Time) (*Endpoint, Delta, error) {
	if known := r.byID[in.ID]; known != nil {
		return r.renew(known, in, now)
	}
	if known := r.byID[r.byRequest[requestKey{in.JobID, in.Request}]]; in.Request != "" && known != nil {
		return known, Delta{}, nil
	}
	var d Delta
	for _, other := range r.in(in.Namespace).byName[in.Name] {
		switch {
		case replaces(&in, other):
			d.removed = append(d.removed, other)
		case in.Unique || other.Unique:
			return nil, Delta{}, fmt.Errorf("%w: %s of task %d of job %s has it; unregister that, or choose another name", ErrNameTaken, other.Address, other.Task, other.JobID)
		}
	}
	if len(r.byJob[in.JobID])-len(d.removed) >= maxEndpoints {
		return nil, Delta{}, fmt.Errorf("%w: job %s has %d already", ErrTooMany, in.JobID, maxEndpoints)
	}
	for _, old := range d.removed {
		r.remove(old)
	}
	if in.ID == "" {
		in.ID = id
	}
	in.At = now
	return r.put(in, now, d)
}

// renew gives an endpoint its time again, and changes it.
func (r *Registry) renew(known *Endpoint, in Endpoint, now time.Time) (*Endpoint, Delta, error) {
	switch {
	case known.JobID != in.JobID:
		return nil, Delta{}, ErrNotOwn
	case known.Name != in.Name || known.Namespace != in.Namespace || known.Task != in.Task:
		return nil, Delta{}, fmt.Errorf("%w: %s of task %d", errOtherActor, known.Name, known.Task)
	case known.Attempt != in.Attempt:
		return nil, Delta{}, errIncarnation
	}
	in.At, in.Request = known.At, known.Request
	if in.sameBut(known) {
		if in.TTL == 0 {
			return known, Delta{}, nil
		}
		// The same for all clients, and not worth a write: the next leader gives it
		// all its time again.
		renewed := *known
		renewed.Expires = now.Add(in.TTL)
		r.swap(known, &renewed)
		return &renewed, Delta{}, nil
	}
	for _, other := range r.in(in.Namespace).byName[in.Name] {
		if other != known && in.Unique {
			return nil, Delta{}, fmt.Errorf("%w: %s of job %s has it", ErrNameTaken, other.Address, other.JobID)
		}
	}
	in.Wire, in.Expires = nil, time.Time{}
	next := r.finish(in, now)
	r.swap(known, next)
	r.changes++
	return next, Delta{added: []*Endpoint{next}, removed: []*Endpoint{known}}, nil
}

// replaces reports whether a registration is of the same actor as an endpoint:
// its task's earlier attempt, the same address, or the only one of that name.
func replaces(in, other *Endpoint) bool {
	return in.JobID == other.JobID && in.Task == other.Task &&
		(other.Attempt < in.Attempt || other.Address == in.Address || in.Unique)
}

func (r *Registry) put(in Endpoint, now time.Time, d Delta) (*Endpoint, Delta, error) {
	e := r.finish(in, now)
	r.insert(e)
	r.changes++
	d.added = append(d.added, e)
	return e, d, nil
}

func (r *Registry) finish(in Endpoint, now time.Time) *Endpoint {
	if in.TTL > 0 {
		in.Expires = now.Add(in.TTL)
	}
	return &in
}

// Unregister forgets an endpoint of a job, or of any job with job "". An unknown id
// is no error.
func (r *Registry) Unregister(id, job string) (Delta, error) {
	e := r.byID[id]
	switch {
	case e == nil:
		return Delta{}, nil
	case job != "" && e.JobID != job:
		return Delta{}, ErrNotOwn
	}
	r.remove(e)
	return r.dropped([]*Endpoint{e}), nil
}

// Prune forgets the endpoints whose tasks are gone.
func (r *Registry) Prune(lives func(*Endpoint) bool) Delta {
	var gone []*Endpoint
	for _, e := range r.byID {
		if !lives(e) {
			gone = append(gone, e)
		}
	}
	for _, e := range gone {
		r.remove(e)
	}
	return r.dropped(gone)
}

// Expire forgets the endpoints whose time is over.
func (r *Registry) Expire(now time.Time) Delta {
	var gone []*Endpoint
	for len(r.expiries) > 0 && !r.expiries[0].at.After(now) {
		x, _ := heap.Pop(&r.expiries).(expiry)
		if e := r.byID[x.id]; e != nil && e.Expires.Equal(x.at) {
			r.remove(e)
			gone = append(gone, e)
		}
	}
	return r.dropped(gone)
}

// NextExpiry is when expire has something to do, zero: never.
func (r *Registry) NextExpiry() time.Time {
	if len(r.expiries) == 0 {
		return time.Time{}
	}
	return r.expiries[0].at
}

func (r *Registry) dropped(gone []*Endpoint) Delta {
	if len(gone) == 0 {
		return Delta{}
	}
	r.changes++
	return Delta{removed: gone}
}

// Version rises with every change that must be saved.
func (r *Registry) Version() uint64 { return r.changes }

// Size is how many endpoints are registered.
func (r *Registry) Size() int { return len(r.byID) }

// Named are the endpoints of a name, the oldest first. The list does not change.
func (r *Registry) Named(namespace, name string) []*Endpoint { return r.in(namespace).byName[name] }

// List are the endpoints whose names begin with a prefix, by name, the oldest first.
func (r *Registry) List(namespace, prefix string) []*Endpoint { return r.in(namespace).list(prefix) }

// Suggestions are up to three names that a misspelt one may have meant.
func (r *Registry) Suggestions(namespace, name string) []string {
	return r.in(namespace).suggestions(name)
}

// All is everything known, to be saved.
func (r *Registry) All() []*Endpoint {
	return slices.SortedFunc(maps.Values(r.byID), byAge)
}

func byAge(a, b *Endpoint) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	return compareIDs(a, b)
}

func (r *Registry) insert(e *Endpoint) {
	e.Wire = e.asSent()
	r.byID[e.ID] = e
	if e.Request != "" {
		r.byRequest[requestKey{e.JobID, e.Request}] = e.ID
	}
	if r.byJob[e.JobID] == nil {
		r.byJob[e.JobID] = map[string]struct{}{}
	}
	r.byJob[e.JobID][e.ID] = struct{}{}
	r.space(e.Namespace).insert(e)
	r.schedule(e)
}

func (r *Registry) remove(e *Endpoint) {
	delete(r.byID, e.ID)
	delete(r.byRequest, requestKey{e.JobID, e.Request})
	delete(r.byJob[e.JobID], e.ID)
	if len(r.byJob[e.JobID]) == 0 {
		delete(r.byJob, e.JobID)
	}
	r.space(e.Namespace).remove(e)
	r.tidy(e.Namespace)
}

// swap puts an endpoint in the place of the one with the same id and name.
func (r *Registry) swap(old, next *Endpoint) {
	if next.Wire == nil {
		next.Wire = next.asSent()
	}
	r.byID[old.ID] = next
	r.space(old.Namespace).swap(old, next)
	r.schedule(next)
}

// maxStale is how many expiries that are not true any more may be kept before they
// are removed.
const maxStale = 1000

func (r *Registry) schedule(e *Endpoint) {
	if e.Expires.IsZero() {
		return
	}
	heap.Push(&r.expiries, expiry{e.Expires, e.ID})
	if len(r.expiries) <= 2*len(r.byID)+maxStale {
		return
	}
	r.expiries = slices.DeleteFunc(r.expiries, func(x expiry) bool {
		known := r.byID[x.id]
		return known == nil || !known.Expires.Equal(x.at)
	})
	heap.Init(&r.expiries)
}

// tidy forgets a namespace in which nothing is left.
func (r *Registry) tidy(namespace string) {
	if s := r.spaces[namespace]; len(s.names)+len(s.exact)+len(s.prefixes) == 0 {
		delete(r.spaces, namespace)
	}
}

// in is a namespace's index to read, which may have nothing in it.
func (r *Registry) in(namespace string) *space {
	if s := r.spaces[namespace]; s != nil {
		return s
	}
	return &space{}
}

// space is a namespace's index, made if there is none.
func (r *Registry) space(namespace string) *space {
	s := r.spaces[namespace]
	if s == nil {
		s = newSpace()
		r.spaces[namespace] = s
	}
	return s
}

// expiry is when an endpoint may expire; if the endpoint has another time, it was
// renewed since.
type expiry struct {
	at time.Time
	id string
}

type expiryHeap []expiry

var _ heap.Interface = (*expiryHeap)(nil)

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *expiryHeap) Push(x any) {
	if e, ok := x.(expiry); ok {
		*h = append(*h, e)
	}
}

func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
