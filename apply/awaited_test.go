package apply

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Whether hosts are awaited is found out of what has changed as it is of all.
func TestAwaitedHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &Observer{
			Live: &told{}, assigned: map[string]plan.Assigned{}, hosts: map[string][]plan.Host{},
			changing: map[string]bool{},
		}
		hosts := map[string]int{} // by slice that is listed
		var list []schema.SliceStatus
		for slice := range 4 {
			for n := range 2 {
				(&mailWriter{o: o}).report(&state.HostReport{Slice: fmt.Sprint(slice), Host: n, Seq: 1})
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			slice := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "slice")) // the hosts of some are not known
			n := rapid.IntRange(0, 1).Draw(t, "host")
			w := &mailWriter{o: o}
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				o.wrote(&plan.Assigned{Assignment: state.Assignment{Slice: slice}, Object: o.assigned[slice].Object + 1})
			case 1:
				o.forgot(slice)
			case 2, 3, 8, 9:
				o.changing[slice] = true
				w.report(&state.HostReport{Slice: slice, Host: n, Seq: 1})
			case 4:
				o.changing[slice] = true
				w.drop(store.HostKey(slice, n))
			case 5:
				hosts[slice] = rapid.IntRange(1, 3).Draw(t, "hosts")
			case 6:
				delete(hosts, slice)
			case 7: // it takes the place of another
				if listed := slices.Sorted(maps.Keys(hosts)); len(listed) > 0 {
					n := hosts[listed[0]]
					delete(hosts, listed[0])
					hosts[slice] = n
				}
			}
			if rapid.Bool().Draw(t, "another list") {
				list = nil
				for _, name := range slices.Sorted(maps.Keys(hosts)) {
					n := hosts[name]
					list = append(list, schema.SliceStatus{Phase: schema.SliceReady, Spec: schema.SliceSpec{Name: name, Hosts: n}})
				}
			}
			lists := map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {Slices: list}}
			was := o.live.complete
			o.live.complete = nil
			got := o.awaitsHosts(lists, was)
			known := o.live.complete
			if want := o.awaitsHosts(lists, nil); got != want {
				t.Fatalf("hosts are awaited: got %t, want %t: assigned %v, hosts %v, listed %v", got, want, o.assigned, o.hosts, hosts)
			}
			o.live.complete = known
			if rapid.Bool().Draw(t, "the look succeeds") {
				o.changed, o.changing = o.changing, map[string]bool{}
			}
		}
	})
}
