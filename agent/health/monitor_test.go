package health

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The checks of a task, as a script: the time after start until which they
// fail, or from which on they do.
func TestWatch(t *testing.T) {
	spec := schema.Health{
		Interval: schema.Duration(10 * time.Second), Timeout: schema.Duration(5 * time.Second), Threshold: 3,
	}
	patient := spec
	patient.StartPeriod = schema.Duration(time.Minute)
	quick := spec
	quick.Interval = schema.Duration(100 * time.Millisecond)
	for _, test := range []struct {
		name string
		spec schema.Health
		ok   func(after time.Duration) bool
		want []string // changes with the time after start
	}{
		{"healthy at once", spec, func(time.Duration) bool { return true }, []string{"0s healthy"}},
		{
			"healthy soon is seen soon", spec, func(after time.Duration) bool { return after >= 2100*time.Millisecond },
			[]string{"2.25s healthy"},
		},
		{
			"never healthy: one failure counts per interval", spec, func(time.Duration) bool { return false },
			[]string{"10s starting: no", "20s starting: no", "30s unhealthy: no"},
		},
		{
			"failures in the start period do not count", patient, func(time.Duration) bool { return false },
			[]string{
				"10s starting: no", "20s starting: no", "30s starting: no", "40s starting: no", "50s starting: no", "1m0s starting: no",
				"1m10s starting: no", "1m20s starting: no", "1m30s unhealthy: no",
			},
		},
		{
			"late but within the threshold", spec, func(after time.Duration) bool { return after >= 29*time.Second },
			[]string{"10s starting: no", "20s starting: no", "29s healthy"},
		},
		{
			"once healthy every failure counts", patient, func(after time.Duration) bool { return after < 15*time.Second },
			[]string{"0s healthy", "40s unhealthy: no"},
		},
		{
			"single failures are forgiven", quick,
			func(after time.Duration) bool { return (after/(100*time.Millisecond))%3 == 0 || after > 5*time.Second },
			[]string{"0s healthy"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var got []string
				check := func(context.Context) error {
					if test.ok(time.Since(start)) {
						return nil
					}
					return errors.New("no")
				}
				Watch(ctx, NewMonitor(test.spec, start, state.HealthStarting), check, func(state state.HealthState, err error) {
					said := fmt.Sprintf("%s %s", time.Since(start), state)
					if err != nil {
						said += ": " + err.Error()
					}
					got = append(got, said)
				})
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("changes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestHungCheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := schema.Health{Interval: schema.Duration(10 * time.Second), Timeout: schema.Duration(3 * time.Second), Threshold: 1}
		start := time.Now()
		var last error
		Watch(t.Context(), NewMonitor(spec, start, state.HealthStarting), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(_ state.HealthState, err error) { last = err })
		if !errors.Is(last, context.DeadlineExceeded) || time.Since(start) > 20*time.Second {
			t.Errorf("after %s the last error is %v", time.Since(start), last)
		}
	})
}
