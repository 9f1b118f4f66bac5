package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// finishedShare is how many jobs have finished for each that runs: four tasks for a host.
const finishedShare = 3

// seeding is a store in memory whose hosts obey as soon as an assignment is written.
type seeding struct {
	store.Store
	fleet *fleet

	mu     sync.Mutex
	slices map[string]*slice
}

// made adds the hosts of a slice.
func (s *seeding) made(spec schema.SliceSpec) error {
	s.mu.Lock()
	of := s.fleet.add(spec)
	s.slices[spec.Name] = of
	s.mu.Unlock()
	return of.write(context.Background(), s.put)
}

// Put writes an object; the hosts of an assignment obey.
func (s *seeding) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	g, err := s.Store.Put(ctx, key, data, want)
	if err != nil || !strings.HasPrefix(key, store.AssignPrefix) {
		return g, err
	}
	var a state.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		return g, err
	}
	s.mu.Lock()
	of := s.slices[a.Slice]
	s.mu.Unlock()
	for n := range of.hosts {
		of.obey(n, g, data)
		if a.Run != nil && a.Run.Job == finished(0) {
			of.finish(n)
		}
	}
	return g, of.write(ctx, s.put)
}

func (s *seeding) put(ctx context.Context, key string, data []byte) (store.Generation, error) {
	return s.Store.Put(ctx, key, data, store.Any)
}

// finished is the address of a job that has finished. The first runs once in a seeded stack, and
// others are copies of it.
func finished(n int) schema.Address {
	return schema.Address{Kind: schema.KindJob, Name: "finished", Key: schema.IntKey(n)}
}

// job is a gang of a slice.
func job(addr schema.Address) schema.Job {
	return schema.Job{
		Addr: addr, Namespace: "work", Command: []schema.Text{schema.Plain("true")},
		Resources: schema.Resources{Provider: schema.ProviderGCP, TPU: accelerator, Slices: 1, Preemptible: true},
		Retries:   schema.Retries{Preemption: schema.Unlimited, Failure: schema.Unlimited},
	}
}

// seed brings a stack about with a number of jobs whose tasks run on all hosts, and others that
// have finished. It is made in memory, and then written to the fleet's store.
func seed(ctx context.Context, f *fleet, n int) error {
	in := &seeding{Store: &memory{objects: map[string]store.Object{}}, fleet: f, slices: map[string]*slice{}}
	p := &provider{slices: map[string]schema.SliceStatus{}, made: in.made}
	s, err := apply.New(ctx, apply.Config{
		Store: in, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: p},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
		Now: func() time.Time { return time.Now().Add(-slicesAge) },
	})
	if err != nil {
		return err
	}
	desired := schema.Desired{
		Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "bench", Zones: []string{zone}}},
		Jobs:      []schema.Job{job(finished(0))},
	}
	for i := range n {
		desired.Jobs = append(desired.Jobs, job(schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)}))
	}
	if err := s.Accept(ctx, apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		return err
	}
	if err := settle(ctx, s); err != nil {
		return err
	}
	if err := s.Accept(ctx, withFinished(s.Document(), finishedShare*n)); err != nil {
		return err
	}
	if err := settle(ctx, s); err != nil {
		return err
	}
	f.stack = s.Document().Stack()
	if err := in.writeRoster(ctx); err != nil {
		return err
	}
	return in.copy(ctx)
}

// writeRoster leaves the keys of hosts as a controller that has led does.
func (s *seeding) writeRoster(ctx context.Context) error {
	roster := keys.Roster{}
	for name, of := range s.slices {
		for range of.hosts {
			roster[name] = append(roster[name], s.fleet.public)
		}
	}
	data, err := json.Marshal(roster)
	if err == nil {
		_, err = s.put(ctx, keys.RosterKey, data)
	}
	return err
}

// settle steps until nothing is left to do.
func settle(ctx context.Context, s *apply.Stepper) error {
	for {
		next, err := s.Step(ctx)
		if err != nil {
			return err
		}
		if p := s.Last(); s.Idle() && len(p.Actions)+len(p.Pending) == 0 {
			return s.Save(ctx)
		}
		s.Wait(ctx, next)
	}
}

// withFinished is a document in which as many jobs have finished.
func withFinished(doc *state.Document, n int) *state.Document {
	next := doc.Clone()
	of := doc.Jobs[finished(0)]
	for i := 1; i < n; i++ {
		j, spec := *of, *of.Spec
		spec.Addr = finished(i)
		j.ID, j.Spec = fmt.Sprintf("%s-%d", of.ID, i), &spec
		next.Jobs[spec.Addr] = &j
		next.Desired.Jobs = append(next.Desired.Jobs, job(spec.Addr))
	}
	slices.SortFunc(next.Desired.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
	return next
}

// copy writes all objects to the fleet's store, and keeps the hosts of slices that are there.
func (s *seeding) copy(ctx context.Context) error {
	listed, err := s.List(ctx, "")
	if err != nil {
		return err
	}
	for i := range listed {
		object, err := s.Get(ctx, listed[i].Key)
		if err != nil {
			return err
		}
		generation, err := s.fleet.put(ctx, object.Key, object.Data)
		if err != nil {
			return err
		}
		name, assigned := strings.CutPrefix(object.Key, store.AssignPrefix)
		if !assigned {
			continue
		}
		of := s.slices[strings.TrimSuffix(name, ".json")]
		for _, h := range of.hosts {
			h.object = generation
		}
		s.fleet.slices = append(s.fleet.slices, of)
	}
	return nil
}
