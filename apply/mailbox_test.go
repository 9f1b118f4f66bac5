package apply_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// While hosts report by streams a step does not wait for the reports of hosts that have
// something to run: until they are read, their slices are unread, and newer ones come first.
// The list of a large mailbox is not waited for, and not made again at once.
func TestALookDoesNotHoldUpSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		lists := 0
		slow := &storetest.Faulty{Store: s, Before: func(op storetest.Op, key string) error {
			switch {
			case op == storetest.OpList:
				lists++
				time.Sleep(2 * time.Second)
			case op == storetest.OpGet && strings.HasPrefix(key, store.HostsPrefix+"busy"):
				time.Sleep(time.Second)
			}
			return nil
		}}
		put := func(key string, data string) {
			t.Helper()
			if _, err := s.Put(t.Context(), key, []byte(data), store.Any); err != nil {
				t.Fatal(err)
			}
		}
		const busy = 2000 // slices, of one host: more than are read at a time
		for i := range busy {
			name := fmt.Sprintf("busy%04d", i)
			put(store.AssignKey(name), fmt.Sprintf(`{"slice":%q,"generation":1,"run":{"attempt":1}}`, name))
			put(store.HostKey(name, 0), fmt.Sprintf(`{"slice":%q,"seq":1}`, name))
			if i == 0 {
				time.Sleep(time.Second)
			}
		}
		put(store.HostKey("free", 0), `{"slice":"free","seq":1}`)
		streams := &streams{assigned: map[string]state.Generation{}}
		o := &apply.Observer{Store: slow, Live: streams, Patience: time.Second}
		look := func(want time.Duration, hosts, unread int) map[string]bool {
			t.Helper()
			began := time.Now()
			obs, err := o.Observe(t.Context(), "stack")
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != want || len(obs.Hosts) != hosts || len(obs.Unread) != unread || len(obs.Assignments) != busy {
				t.Errorf("after %s: %d slices with hosts, %d unread, %d assignments; want %d, %d and %d after %s",
					took, len(obs.Hosts), len(obs.Unread), len(obs.Assignments), hosts, unread, busy, want)
			}
			return obs.Unread
		}
		look(2*time.Second, 1, busy) // until what is assigned is known, and the hosts that are free
		streams.next = []apply.LiveHost{live("busy0001", 7, schema.TaskRunning)}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		unread := look(0, 1+1024, busy-1024) // one that goes on holds up nothing
		if !unread["busy0000"] {
			t.Error("the oldest report was read before newer ones")
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		look(0, 1+busy, 0)
		if lists != 1 {
			t.Errorf("listed %d times, want once", lists)
		}
		look(100*time.Millisecond, 1+busy, 0) // not all hosts are live: the next list is under way
		time.Sleep(2 * time.Second)
		synctest.Wait()
		look(0, 1+busy, 0)
		look(0, 1+busy, 0) // the list took two seconds: the next one is later
		if lists != 2 {
			t.Errorf("listed %d times, want twice", lists)
		}
		if got := slices.Sorted(maps.Keys(o.Changed())); len(got) != 0 {
			t.Errorf("%q changed, want nothing", got)
		}
	})
}

// While hosts come back by streams a look leaves their reports in the store to them, but not for
// long.
func TestALookLeavesHostsThatComeToTheirStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		const busy = 4000 // slices, of one host
		for i := range busy {
			name := fmt.Sprintf("busy%04d", i)
			for key, data := range map[string]string{
				store.AssignKey(name):  fmt.Sprintf(`{"slice":%q,"generation":1,"run":{"attempt":1}}`, name),
				store.HostKey(name, 0): fmt.Sprintf(`{"slice":%q,"seq":1}`, name),
			} {
				if _, err := s.Put(t.Context(), key, []byte(data), store.Any); err != nil {
					t.Fatal(err)
				}
			}
		}
		var mu sync.Mutex
		read := 0
		counted := &storetest.Faulty{Store: s, Before: func(op storetest.Op, key string) error {
			if op == storetest.OpGet && strings.HasPrefix(key, store.HostsPrefix) {
				time.Sleep(200 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				read++
			}
			return nil
		}}
		streams := &streams{assigned: map[string]state.Generation{}}
		o := &apply.Observer{Store: counted, Live: streams, Patience: time.Second}
		look := func() int {
			t.Helper()
			obs, err := o.Observe(t.Context(), "stack")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return len(obs.Unread)
		}
		for came := 0; came < 2500; came += 500 {
			for i := range 500 {
				streams.next = append(streams.next, live(fmt.Sprintf("busy%04d", came+i), 7, schema.TaskRunning))
			}
			look()
			time.Sleep(time.Second)
		}
		if read != 1024 {
			t.Errorf("%d reports were read while hosts came, want one part", read)
		}
		time.Sleep(2 * time.Second)
		for look() > 0 {
			time.Sleep(time.Second)
		}
		if read != 1024+busy-2500 {
			t.Errorf("%d reports were read, want those of the first part and of hosts that did not come", read)
		}
	})
}
