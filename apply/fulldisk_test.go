package apply_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Assignments that the store cannot take, on a full disk for one, are tried a few
// times in a minute and not hundreds of times a second; once it takes them, soon.
func TestFailingAssignmentsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 5
		w := newWorld()
		full, failed := true, 0
		cfg := w.config()
		cfg.Store = &storetest.Faulty{Store: w, Before: func(op storetest.Op, key string) error {
			if full && op == storetest.OpPut && strings.HasPrefix(key, store.AssignPrefix) {
				return unix.ENOSPC
			}
			return nil
		}}
		cfg.OnError = func(plan.Action, error) { failed++ }
		s := newStepper(t, cfg)
		accept(t, s, jobs(count))
		run := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				next, err := s.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s.Wait(t.Context(), next)
			}
		}
		run(time.Minute)
		// After 1, 2, 4 and then every 5 s.
		if least, most := 10*count, 16*count; failed < least || failed > most {
			t.Errorf("%d assignments were tried %d times in a minute, want %d to %d", count, failed, least, most)
		}
		full = false
		run(6 * time.Second)
		for addr, j := range s.Document().Jobs {
			if j.Status != schema.JobRunning {
				t.Errorf("%s is %s six seconds after there was space again", addr, j.Status)
			}
		}
	})
}
