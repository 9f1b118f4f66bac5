package apply_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store/storetest"
)

// silent is a provider whose hosts never report.
type silent struct{ capacity }

func (s silent) Create(_ context.Context, spec schema.SliceSpec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[spec.Name] = schema.SliceStatus{Spec: spec, Phase: schema.SliceReady}
	return nil
}

// Right after a slice is created the loop looks for the first report of its host every few
// milliseconds, though not all the time where a step takes long; later it goes on at its pace.
func TestPaceAfterACreation(t *testing.T) {
	const pace = 40 * time.Millisecond
	for _, test := range []struct {
		name       string
		step, soon time.Duration
	}{
		{"short steps", 0, 10 * time.Millisecond},
		{"steps of 4 ms", 4 * time.Millisecond, 16 * time.Millisecond},
		{"long steps", 50 * time.Millisecond, pace},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				cfg := w.config()
				cfg.Providers[schema.ProviderLocal] = silent{capacity{w}}
				cfg.Store = &storetest.Faulty{Store: w, After: func(op storetest.Op, _ string) error {
					if op == storetest.OpList {
						time.Sleep(test.step)
					}
					return nil
				}}
				s := newStepper(t, cfg)
				accept(t, s, jobs(1))
				step(t, s)
				s.Wait(t.Context(), time.Hour) // until the slice is created
				created := time.Now()
				step(t, s)
				for time.Since(created) < 400*time.Millisecond {
					next := step(t, s)
					if next != test.soon {
						t.Fatalf("%s after the creation the next step is due in %s, want %s", time.Since(created), next, test.soon)
					}
					s.Wait(t.Context(), next)
				}
				time.Sleep(time.Second)
				if next := step(t, s); next != pace {
					t.Errorf("later the next step is due in %s, want %s", next, pace)
				}
			})
		})
	}
}

func step(t *testing.T, s *apply.Stepper) time.Duration {
	t.Helper()
	next, err := s.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return next
}
