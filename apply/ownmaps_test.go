package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// told is what hosts report by streams.
type told struct{ next []LiveHost }

func (l *told) Take(time.Duration) []LiveHost {
	next := l.next
	l.next = nil
	return next
}
func (*told) Assigned(string, state.Generation, []byte) {}
func (*told) Unassigned(string)                         {}

// Whatever an observer takes in later, by the store, by streams and of what the executor does, an
// observation stays as it was made; and the next one has all of it.
func TestObservationsStayAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, s, l := t.Context(), storetest.NewMemory(), &told{}
		put := func(key string, value any) state.Generation {
			data, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			object, err := s.Put(ctx, key, data, store.Any)
			if err != nil {
				t.Fatal(err)
			}
			return object
		}
		now := time.Unix(1_700_000_000, 0)
		o := &Observer{Store: s, Live: l, Now: func() time.Time { return now }}
		type observation struct {
			is, was *plan.Observed
		}
		var made []observation
		seq, newest := uint64(0), map[string]state.Generation{}
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			now = now.Add(time.Minute) // the store is listed
			slice := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "slice"))
			seq++
			report := state.HostReport{Slice: slice, Boot: "b", Seq: seq, Generation: int64(seq)}
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				put(store.HostKey(slice, 0), report)
			case 1:
				report.Host = rapid.IntRange(0, 2).Draw(t, "host")
				l.next = append(l.next, LiveHost{Slice: slice, Host: report.Host, Report: &report, Live: true, Seq: seq})
			case 2:
				a := state.Assignment{Slice: slice, Generation: int64(seq)}
				newest[slice] = put(store.AssignKey(slice), a)
				if rapid.Bool().Draw(t, "its write is known") {
					o.wrote(&plan.Assigned{Assignment: a, Object: newest[slice]})
				}
			case 3:
				if err := s.Delete(ctx, store.AssignKey(slice)); err != nil {
					t.Fatal(err)
				}
				if err := s.Delete(ctx, store.HostKey(slice, 0)); err != nil {
					t.Fatal(err)
				}
				delete(newest, slice)
				o.forgot(slice)
			default:
				obs, err := o.Observe(ctx, "stack")
				if err != nil {
					t.Fatal(err)
				}
				was := *obs
				was.Assignments, was.Hosts = maps.Clone(obs.Assignments), map[string][]plan.Host{}
				for name, hosts := range obs.Hosts {
					was.Hosts[name] = slices.Clone(hosts)
				}
				made = append(made, observation{obs, &was})
				got := map[string]state.Generation{}
				for name, a := range obs.Assignments {
					got[name] = a.Object
				}
				if !maps.Equal(got, newest) {
					t.Fatalf("got the assignments %v, want %v", got, newest)
				}
			}
			for i, m := range made {
				same := func(a, b plan.Host) bool { return reflect.DeepEqual(a, b) }
				if !maps.EqualFunc(m.is.Assignments, m.was.Assignments, func(a, b plan.Assigned) bool { return reflect.DeepEqual(a, b) }) ||
					!maps.EqualFunc(m.is.Hosts, m.was.Hosts, func(a, b []plan.Host) bool { return slices.EqualFunc(a, b, same) }) {
					t.Fatalf("observation %d has changed: got %+v, want %+v", i, m.is, m.was)
				}
			}
		}
	})
}
