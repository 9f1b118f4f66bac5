package apply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// noStreams are streams by which no host reports.
type noStreams struct{ unassigned []string }

func (*noStreams) Take(time.Duration) []LiveHost             { return nil }
func (*noStreams) Assigned(string, state.Generation, []byte) {}
func (s *noStreams) Unassigned(slice string)                 { s.unassigned = append(s.unassigned, slice) }

// What the executor has removed is not observed any more, before the store is listed again; what
// it could not remove is.
func TestForgottenMailboxes(t *testing.T) {
	s, streams := storetest.NewMemory(), &noStreams{}
	for key, data := range map[string]string{
		store.AssignKey("a"): `{"slice":"a"}`, store.HostKey("a", 0): `{"slice":"a"}`, store.BootPrefix + "a/0": "booting", store.HostKey("b", 0): `{"slice":"b"}`,
	} {
		if _, err := s.Put(t.Context(), key, []byte(data), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	o := &Observer{Store: s, Live: streams}
	if _, err := o.Observe(t.Context(), "stack"); err != nil {
		t.Fatal(err)
	}
	if len(o.assigned) != 1 || len(o.hosts) != 2 || len(o.booting) != 1 {
		t.Fatalf("observed %v, %v and %v", o.assigned, o.hosts, o.booting)
	}
	before := o.hosts
	for slice, err := range map[string]error{"a": nil, "b": errors.New("permission denied")} {
		o.forgot((&result{action: plan.Action{Verb: plan.ForgetSlice, Slice: &schema.SliceSpec{Name: slice}}, err: err}).forgotten())
	}
	if len(o.assigned) != 0 || len(o.hosts) != 1 || len(o.booting) != 0 || !o.changing["a"] || o.changing["b"] || len(streams.unassigned) != 1 {
		t.Errorf("observed %v, %v, %v, changing %v; want nothing of a", o.assigned, o.hosts, o.booting, o.changing)
	}
	if len(before) != 2 {
		t.Error("an earlier observation has changed")
	}
}

// late is a store whose reads take a while to arrive.
type late struct {
	store.Store
	by *time.Duration
}

func (s late) Get(ctx context.Context, key string) (store.Object, error) {
	object, err := s.Store.Get(ctx, key)
	time.Sleep(*s.by)
	return object, err
}

// What a look had read of a mailbox before the executor removed it is not observed, of assignments
// and of reports; what is written there afterwards is.
func TestForgottenMailboxesOfALookUnderWay(t *testing.T) {
	for name, before := range map[string]time.Duration{"assignments": 0, "reports": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, by := storetest.NewMemory(), time.Duration(0)
				objects := map[string]string{
					store.AssignKey("a"): `{"slice":"a","generation":1,"run":{"attempt":1}}`, store.HostKey("a", 0): `{"slice":"a","seq":1}`,
				}
				write := func() {
					t.Helper()
					for key, data := range objects {
						if _, err := s.Put(t.Context(), key, []byte(data), store.Any); err != nil {
							t.Fatal(err)
						}
					}
				}
				o := &Observer{Store: late{s, &by}, Live: &noStreams{}, Patience: time.Second}
				look := func(after time.Duration, there bool) {
					t.Helper()
					time.Sleep(after)
					obs, err := o.Observe(t.Context(), "stack")
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if _, assigned := obs.Assignments["a"]; assigned != there || len(obs.Hosts["a"]) == 1 != there {
						t.Errorf("observed assignments %v and hosts %v; is the slice there: %t", obs.Assignments, obs.Hosts, there)
					}
				}
				write()
				look(0, true)
				write()
				by = time.Second
				look(10*time.Second, true) // the next look is under way, first with assignments
				look(before, true)
				for key := range objects {
					if err := s.Delete(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				}
				o.forgot("a")
				look(2*time.Second, false)
				look(2*time.Second, false)
				by = 0
				look(10*time.Second, false)
				write()
				look(10*time.Second, true)
			})
		})
	}
}

// An observer whose first look has failed looks again, however long its list took: a mailbox of which
// nothing was read is not an empty one.
func TestNothingIsObservedBeforeALookIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fails := storetest.NewMemory(), true
		if _, err := s.Put(t.Context(), store.AssignKey("a"), []byte(`{"slice":"a","generation":1}`), store.Absent); err != nil {
			t.Fatal(err)
		}
		o := &Observer{Live: &noStreams{}, Patience: time.Second, Store: &storetest.Faulty{Store: s, Before: func(op storetest.Op, _ string) error {
			switch {
			case op == storetest.OpList:
				time.Sleep(2 * time.Second)
			case op == storetest.OpGet && fails:
				return errors.New("the bucket is away")
			}
			return nil
		}}}
		if _, err := o.Observe(t.Context(), "stack"); err == nil {
			t.Error("what could not be read was observed")
		}
		fails = false
		if obs, err := o.Observe(t.Context(), "stack"); err != nil || len(obs.Assignments) != 1 {
			t.Errorf("observed %+v, error %v; want the assignment of a", obs, err)
		}
	})
}
