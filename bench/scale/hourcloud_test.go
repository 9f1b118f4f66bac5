package scale

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	ahead "github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/hosts"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// cloud has the slices.
type cloud struct {
	world *world

	mu     sync.Mutex
	slices map[string]*machines
	made   int
}

var _ providers.Provider = (*cloud)(nil)

// How long the cloud takes.
const (
	createTakes = 20 * time.Second
	deleteTakes = 5 * time.Second
)

// From as many slices on a list is good for as long as with Google Cloud. Fewer are listed in each step.
const manySlices = 100

// Pace is for how long a list is good.
func (c *cloud) Pace() time.Duration {
	if c.world.jobs < manySlices {
		return 0
	}
	return pace
}

// stepTakes is about how long a step takes for each host of a stack in which much happens; in a bubble
// it would take no time.
const stepTakes = time.Microsecond

// status is what the cloud says of a slice.
func (s *machines) status() schema.SliceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return schema.SliceStatus{Spec: s.spec, Phase: s.phase}
}

// Inventory lists all slices.
func (c *cloud) Inventory(context.Context, string) (inv schema.Inventory, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.slices)) {
		inv.Slices = append(inv.Slices, c.slices[name].status())
	}
	return inv, nil
}

// Get reads one slice.
func (c *cloud) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.slices[spec.Name]; s != nil {
		return s.status(), true, nil
	}
	return schema.SliceStatus{}, false, nil
}

// Create makes a slice, whose agents start a while later.
func (c *cloud) Create(_ context.Context, spec schema.SliceSpec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slices[spec.Name] != nil {
		return nil
	}
	c.made++
	s := &machines{world: c.world, spec: spec, number: c.made, phase: schema.SliceCreating}
	for n := range spec.Hosts {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			return err
		}
		s.hosts = append(s.hosts, &machine{of: s, number: n, key: key, wake: make(chan struct{}, 1)})
	}
	c.slices[spec.Name] = s
	time.AfterFunc(createTakes, func() {
		s.mu.Lock()
		if s.phase == schema.SliceCreating {
			s.phase = schema.SliceReady
		}
		s.mu.Unlock()
		for _, m := range s.hosts {
			m.start()
		}
	})
	return nil
}

// Delete ends a slice.
func (c *cloud) Delete(_ context.Context, spec schema.SliceSpec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slices[spec.Name]
	if s == nil || !s.over(schema.SliceDeleting) {
		return nil
	}
	time.AfterFunc(deleteTakes, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.slices, spec.Name)
	})
	return nil
}

// over ends all that runs on a slice, and reports whether it was in another phase.
func (s *machines) over(phase schema.SlicePhase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == phase {
		return false
	}
	s.phase = phase
	for _, m := range s.hosts {
		m.returns = time.Time{}
		if m.stop != nil {
			m.stop()
		}
		if m.runs {
			m.stopped()
		}
	}
	return true
}

func (s *machines) preempt() { s.over(schema.SliceDead) }

// ready are the slices that are, by name. Agents that are to start again do.
func (c *cloud) ready() []*machines {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ready []*machines
	for _, name := range slices.Sorted(maps.Keys(c.slices)) {
		s := c.slices[name]
		if s.status().Phase != schema.SliceReady {
			continue
		}
		ready = append(ready, s)
		for _, m := range s.hosts {
			s.mu.Lock()
			due := !m.returns.IsZero() && !time.Now().Before(m.returns)
			s.mu.Unlock()
			if due {
				m.start()
			}
		}
	}
	return ready
}

// recall has all agents that were killed start again now.
func (c *cloud) recall() {
	for _, s := range c.ready() {
		for _, m := range s.hosts {
			m.start()
		}
	}
}

// controlling is a process of a controller.
type controlling struct {
	world *world
	name  string
	in    door
	kill  context.CancelFunc // as by SIGKILL
	end   func()             // as by SIGTERM
	hub   *hosts.Hub
	leads bool           // belongs to the world's mutex
	saw   *plan.Observed // in its last step; the loop's alone, while that does not wait
}

// startController starts a controller, and another one once it ends.
func (w *world) startController() {
	w.mu.Lock()
	w.made++
	number := w.made
	w.mu.Unlock()
	ctx, kill := context.WithCancel(w.t.Context())
	ending := make(chan struct{})
	c := &controlling{world: w, name: fmt.Sprintf("controller-%d", number), kill: kill, end: sync.OnceFunc(func() { close(ending) })}
	c.in = door{Store: w.objects, world: w, machine: c.name, ctx: ctx}
	w.mu.Lock()
	w.controllers[number] = c
	w.mu.Unlock()
	w.ended.Go(func() {
		err := c.run(ctx, ending)
		kill()
		w.mu.Lock()
		delete(w.controllers, number)
		if w.calm && w.t.Context().Err() == nil && err != nil {
			w.tally["controller ended while nothing failed: "+err.Error()]++
		}
		w.mu.Unlock()
		select {
		case <-time.After(5 * time.Second):
			w.startController()
		case <-w.t.Context().Done():
		}
	})
}

// anyController is one that leads, or another one.
func (w *world) anyController() *controlling {
	w.mu.Lock()
	defer w.mu.Unlock()
	var other *controlling
	for _, number := range slices.Sorted(maps.Keys(w.controllers)) {
		if other = w.controllers[number]; other.leads {
			return other
		}
	}
	return other
}

var errEnding = errors.New("this controller is told to end")

// run leads once it can, until it is told to end or loses the lease.
func (c *controlling) run(ctx context.Context, ending <-chan struct{}) error {
	known := apply.NewStateReader(c.in)
	doc, _, err := known.Read(ctx)
	if err != nil {
		return err
	}
	verifier, err := token.NewVerifier(doc.Stack(), keys.NewReader(c.in, nil))
	if err != nil {
		return err
	}
	c.hub = hosts.New(slog.New(slog.DiscardHandler), func(ctx context.Context, text string) (token.Claims, error) {
		return verifier.Verify(ctx, text, time.Now())
	})
	fingerprint := fmt.Sprintf("%064x", c.name)
	gone := c.world.wire.serve(c.name, &server{fingerprint: fingerprint, hosts: c.hub, admit: func(ctx context.Context, text string) (context.Context, error) {
		claims, err := verifier.Verify(ctx, text, time.Now())
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		return caller.With(ctx, caller.Caller{Kind: caller.Host, Slice: claims.Signer.Slice, Host: claims.Signer.Host}), nil
	}})
	defer gone()
	key, err := c.hub.NewKey()
	if err != nil {
		return err
	}
	acquiring, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-ending:
			stop(errEnding)
		case <-acquiring.Done():
		}
	}()
	before := ahead.NewAhead(c.in)
	_ = before.Read(acquiring) // or it reads all once it leads
	lease, err := store.Acquire(acquiring, c.in, store.LeaseConfig{
		Command: c.name, Yields: true, Wait: 24 * time.Hour, MinEpoch: doc.Epoch, ControllerAddress: c.name, ControllerFingerprint: fingerprint,
		RelayKey: key, Stack: doc.Stack(),
	})
	if err != nil {
		return err
	}
	err = c.lead(lease, apply.Known{State: known, Mail: before}, ending)
	_ = lease.Release(context.WithoutCancel(ctx)) // a process that was killed cannot
	return err
}

func (c *controlling) lead(lease *store.Held, known apply.Known, ending <-chan struct{}) error {
	c.world.count("takeover")
	c.world.mu.Lock()
	c.leads = true
	c.world.mu.Unlock()
	ctx, wake := lease.Context(), make(chan struct{}, 1)
	s, err := apply.NewAfter(ctx, apply.Config{
		Store: c.in, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: c.world.cloud}, Version: "bench",
		Epoch: lease.Epoch(), Valid: lease.Valid, Scope: apply.Scope{All: true}, Eager: true, Wake: wake, Live: c.hub.Lead(wake),
	}, known)
	if err != nil {
		return err
	}
	defer func() { // of a process that ends nothing goes on
		over, cancel := context.WithCancel(ctx)
		cancel()
		s.Drain(over)
	}()
	seen := map[string]uint64{}
	for {
		next, err := s.Step(ctx)
		c.world.observed(c, seen, s.Observed())
		time.Sleep(time.Duration(c.world.jobs*Hosts) * stepTakes)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, apply.ErrStateMoved) || err != nil && lease.Valid() != nil:
			return err
		case err != nil:
			next = time.Second
		}
		select {
		case <-ending:
			drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
			defer cancel()
			s.Drain(drained)
			return errors.Join(s.Save(drained), errEnding)
		default:
		}
		s.Wait(ctx, next)
	}
}

// end ends all that runs.
func (w *world) end() {
	w.mu.Lock()
	w.jobs = 0
	all := maps.Clone(w.controllers)
	w.mu.Unlock()
	w.cloud.mu.Lock()
	for _, s := range w.cloud.slices {
		s.over(schema.SliceDead)
	}
	w.cloud.mu.Unlock()
	for _, c := range all {
		c.kill()
	}
}
