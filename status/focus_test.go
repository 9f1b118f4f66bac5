package status

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// readCounter counts the objects that are read, and those that lists have.
type readCounter struct {
	store.Store
	gets, listed atomic.Int64
}

func (s *readCounter) Get(ctx context.Context, key string) (store.Object, error) {
	s.gets.Add(1)
	return s.Store.Get(ctx, key)
}

func (s *readCounter) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	all, err := s.Store.List(ctx, prefixes...)
	s.listed.Add(int64(len(all)))
	return all, err
}

// What a job of a large stack does is found out by reading what is of it: its assignment and the
// reports of its hosts.
func TestOneJobOfManyIsReadAlone(t *testing.T) {
	s := &readCounter{Store: storetest.NewMemory()}
	doc := &state.Document{Lineage: "abcdefghijklmnop", FormatVersion: state.FormatVersion, Jobs: map[schema.Address]*state.Job{}, Slices: map[string]*state.Slice{}}
	put := func(key string, object any) {
		t.Helper()
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), key, data, store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		addr, name := schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(i)}, fmt.Sprintf("s%d", i)
		spec := &schema.Job{Addr: addr, Command: []schema.Text{schema.Plain("true")}, Resources: schema.Resources{Provider: schema.ProviderRay, CPU: 1, Slices: 1}}
		run := state.Run{Job: addr, JobID: name, Attempt: 1, Spec: *spec}
		doc.Jobs[addr] = &state.Job{
			ID: name, Spec: spec, Status: schema.JobRunning, Slices: []string{name}, Attempt: 1,
			Attempts: []state.Attempt{{Number: 1, Generation: 1, StartedAt: noon, ReadyAt: noon, Slices: []string{name}, Tasks: []state.Task{{Slice: name, State: schema.TaskAssigned}, {Slice: name, Host: 1, State: schema.TaskAssigned}}}},
		}
		doc.Desired.Jobs = append(doc.Desired.Jobs, *spec)
		doc.Slices[name] = &state.Slice{Listed: true, PendingSince: noon, UpAt: noon, Spec: schema.SliceSpec{Name: name, Stack: doc.Stack(), Owner: addr, Provider: schema.ProviderRay, CPU: 1, Hosts: 2}}
		put(store.AssignKey(name), state.Assignment{Slice: name, Stack: doc.Stack(), Epoch: 1, Generation: 1, Run: &run})
		for host := range 2 {
			put(store.HostKey(name, host), state.HostReport{
				Slice: name, Host: host, Boot: "b", Seq: 1, At: noon, Epoch: 1, Generation: 1,
				Task: &state.TaskReport{Job: addr, Attempt: 1, Generation: 1, Task: host, State: schema.TaskRunning, Started: true},
			})
		}
	}
	l := &configuration.Loaded{Document: doc, Stack: &stack.Stack{Store: s}}
	read := func(addrs ...schema.Address) (*View, int64, int64) {
		t.Helper()
		gets, listed := s.gets.Load(), s.listed.Load()
		w := &Observer{l: l, observer: &apply.Observer{Store: s}}
		w.focus(addrs)
		v, err := w.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v, s.gets.Load() - gets, s.listed.Load() - listed
	}
	mine := schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(7)}
	whole, gets, _ := read()
	if gets < 900 {
		t.Fatalf("the whole stack takes %d reads", gets)
	}
	v, gets, listed := read(mine)
	if gets > 5 || listed > 5 {
		t.Errorf("one job takes %d reads and lists of %d objects", gets, listed)
	}
	of := func(v *View) string {
		data, err := json.Marshal(v.Doc.Jobs[mine])
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got, want := of(v), of(whole); got != want || !strings.Contains(got, `"running"`) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if _, gets, _ := read(schema.Address{Kind: schema.KindJob, Name: "j"}); gets < 900 {
		t.Errorf("all instances take %d reads", gets)
	}
}
