package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// A look into the mailbox that takes longer than hosts may be silent makes none of them silent
// whose reports it has not read yet. A host that writes no more becomes silent all the same.
func TestASlowLookMakesNoHostSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		began, seq := time.Now(), 0
		write := func(host string) {
			t.Helper()
			seq++
			if _, err := s.Put(t.Context(), store.HostKey(host, 0), fmt.Appendf(nil, `{"slice":%q,"seq":%d}`, host, seq), store.Any); err != nil {
				t.Fatal(err)
			}
		}
		slow := &storetest.Faulty{Store: s, Before: func(op storetest.Op, key string) error {
			if op == storetest.OpGet && strings.HasPrefix(key, store.HostsPrefix) && time.Since(began) > time.Minute {
				time.Sleep(2 * snapshot.HostTimeout)
			}
			return nil
		}}
		for _, host := range []string{"dies", "lives"} {
			if _, err := s.Put(t.Context(), store.AssignKey(host), fmt.Appendf(nil, `{"slice":%q,"generation":1,"run":{"attempt":1}}`, host), store.Any); err != nil {
				t.Fatal(err)
			}
			write(host)
		}
		o := &apply.Observer{Store: slow, Live: &streams{assigned: map[string]state.Generation{}}, Patience: time.Second}
		defer time.Sleep(4 * snapshot.HostTimeout) // until the last look has ended
		var written, died time.Time
		for time.Since(began) < time.Hour {
			if time.Since(written) > 5*time.Second {
				written = time.Now()
				write("lives")
				if time.Since(began) < 10*time.Minute {
					write("dies")
				}
			}
			obs, err := o.Observe(t.Context(), "stack")
			if err != nil {
				t.Fatal(err)
			}
			for slice, hosts := range obs.Hosts {
				switch silent := hosts[0].SilentFor(obs.Monitored); {
				case silent < snapshot.HostTimeout:
				case slice == "lives" || time.Since(began) < 10*time.Minute:
					t.Fatalf("%s counts as silent for %s after %s", slice, silent, time.Since(began))
				case died.IsZero():
					died = time.Now()
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		if died.IsZero() || died.Sub(began) > 30*time.Minute {
			t.Errorf("a host that wrote no more after 10 min became silent after %s; zero is never", died.Sub(began))
		}
	})
}
