package gcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/schema"
)

// gceProvider is a provider with nothing but this engine, as a process that has
// just started has.
func (s *computeService) provider(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	return &Provider{
		config:  Config{Project: "p", Now: now}.withDefaults(),
		engines: map[schema.Engine]engine{schema.EngineGCE: s.engine(t, now)},
		turns:   &limiter{perMinute: 1000},
	}
}

func gceShapes() map[string]schema.SliceSpec {
	return map[string]schema.SliceSpec{
		"one machine":      gcetest.Spec("one"),
		"group":            gcetest.Spec("many", gcetest.OfTPU("v5p-16", 2)),
		"plain group":      gcetest.Spec("plain", func(s *schema.SliceSpec) { s.Hosts = 3 }),
		"flex-start group": gcetest.Spec("flex", gcetest.OfTPU("v6e-16", 4), gcetest.FlexStart),
	}
}

// parts is how many resources a slice has once it has been asked for.
func parts(spec schema.SliceSpec) int {
	switch {
	case spec.Hosts == 1:
		return 1
	case spec.TPU == "":
		return 2
	case spec.Cloud.Provisioning == schema.ProvisioningFlexStart:
		return 4
	}
	return 3
}

// failure is a call of those that change something at which a process dies.
type failure struct {
	at   int  // which
	lost bool // after it was carried out; else before
}

func (f failure) String() string {
	if f.lost {
		return fmt.Sprintf("call %d, carried out", f.at)
	}
	return fmt.Sprintf("call %d, not carried out", f.at)
}

// arm makes the service fail there and from then on, and returns whether it did.
func (f failure) arm(s *computeService) (hit func() bool) {
	changes, dead := 0, false
	isChange := func(method string) bool {
		for _, each := range []string{".get", ".list", ".errors", ".members"} {
			if strings.HasSuffix(method, each) {
				return false
			}
		}
		return true
	}
	s.do(func() {
		s.reject = func(method string) *computeFail {
			if isChange(method) {
				changes++
			}
			if dead || !f.lost && isChange(method) && changes == f.at {
				dead = true
				return &computeFail{503, "backendError", "the process is gone"}
			}
			return nil
		}
		s.lose = func(method string) bool {
			if f.lost && !dead && isChange(method) && changes == f.at {
				dead = true
				return true
			}
			return false
		}
	})
	return func() bool { return dead }
}

func (s *computeService) disarm() { s.do(func() { s.reject, s.lose = nil, nil }) }

func inventoryOf(t *testing.T, p *Provider) map[string]schema.SliceStatus {
	t.Helper()
	inventory, err := p.Inventory(t.Context(), "stack-a")
	if err != nil {
		t.Fatalf("inventory: %v", err)
	}
	all := map[string]schema.SliceStatus{}
	for _, each := range inventory.Slices {
		all[each.Spec.Name] = each
	}
	return all
}

// carry asks as apply does until a slice is all there.
func carry(t *testing.T, p *Provider, spec schema.SliceSpec) {
	t.Helper()
	for range 10 {
		status, ok := inventoryOf(t, p)[spec.Name]
		switch {
		case ok && status.Spec != spec:
			t.Fatalf("listed as %+v, want %+v", status.Spec, spec)
		case ok && status.Phase == schema.SliceDead:
			t.Fatalf("a slice that is being made is dead: %s", status.Reason)
		case ok && len(status.Down) == 0:
			return
		}
		if err := p.Create(t.Context(), spec); err != nil {
			t.Fatalf("create: %v", err)
		}
	}
	t.Fatal("asked for ten times, and still not there")
}

// discard asks as apply does until nothing of a slice is left.
func discard(t *testing.T, s *computeService, p *Provider, spec schema.SliceSpec) {
	t.Helper()
	for range 10 {
		status, ok := inventoryOf(t, p)[spec.Name]
		if !ok {
			if left := s.left(); len(left) > 0 {
				t.Fatalf("it is listed no more but left %v", left)
			}
			return
		}
		if status.Phase != schema.SliceDeleting {
			if err := p.Delete(t.Context(), spec); err != nil {
				t.Fatalf("delete: %v", err)
			}
		}
	}
	t.Fatalf("deleted ten times, and still there: %v", s.left())
}

// everyFailure runs a test for each call that some work makes, until the work is
// done without reaching the call.
func everyFailure(t *testing.T, work func(t *testing.T, f failure) (reached bool)) {
	for _, lost := range []bool{false, true} {
		reached := true
		for at := 1; reached; at++ {
			f := failure{at: at, lost: lost}
			t.Run(f.String(), func(t *testing.T) { reached = work(t, f) })
			if at == 1 && !reached {
				t.Fatal("the work makes no call")
			}
		}
	}
}

// everyShapeAndFailure is everyFailure for each shape of slice, with a service for
// each run.
func everyShapeAndFailure(t *testing.T, work func(t *testing.T, s *computeService, spec schema.SliceSpec, f failure) (reached bool)) {
	for name, spec := range gceShapes() {
		t.Run(name, func(t *testing.T) {
			everyFailure(t, func(t *testing.T, f failure) bool { return work(t, newComputeService(t), spec, f) })
		})
	}
}

func TestComputeCreationCutShortAnywhereIsFinishedByTheNext(t *testing.T) {
	everyShapeAndFailure(t, func(t *testing.T, s *computeService, spec schema.SliceSpec, f failure) bool {
		hit := f.arm(s)
		err := s.provider(t, time.Now).Create(t.Context(), spec)
		s.disarm()
		if hit() != (err != nil) {
			t.Fatalf("create: %v; the call failed: %t", err, hit())
		}
		carry(t, s.provider(t, time.Now), spec)
		if left := s.left(); len(left) != parts(spec) {
			t.Errorf("there is %v, want %d resources", left, parts(spec))
		}
		return hit()
	})
}

func TestComputeCreationCutShortAnywhereIsDeletedByTheNext(t *testing.T) {
	everyShapeAndFailure(t, func(t *testing.T, s *computeService, spec schema.SliceSpec, f failure) bool {
		hit := f.arm(s)
		_ = s.provider(t, time.Now).Create(t.Context(), spec)
		s.disarm()
		next := s.provider(t, time.Now)
		if _, listed := inventoryOf(t, next)[spec.Name]; listed != (len(s.left()) > 0) {
			t.Errorf("there is %v, and it is listed: %t", s.left(), listed)
		}
		discard(t, s, next, spec)
		return hit()
	})
}

func TestComputeCreationIsGoneOnWithByTheSameProcess(t *testing.T) {
	everyShapeAndFailure(t, func(t *testing.T, s *computeService, spec schema.SliceSpec, f failure) bool {
		p := s.provider(t, time.Now)
		hit := f.arm(s)
		_ = p.Create(t.Context(), spec)
		s.disarm()
		carry(t, p, spec)
		if left := s.left(); len(left) != parts(spec) {
			t.Errorf("there is %v, want %d resources", left, parts(spec))
		}
		return hit()
	})
}

func TestComputeDeletionCutShortAnywhereIsFinishedByTheNext(t *testing.T) {
	everyShapeAndFailure(t, func(t *testing.T, s *computeService, spec schema.SliceSpec, f failure) bool {
		first := s.provider(t, time.Now)
		carry(t, first, spec)
		hit := f.arm(s)
		_ = first.Delete(t.Context(), spec)
		_, _ = first.Inventory(t.Context(), spec.Stack) // which goes on with it
		s.disarm()
		discard(t, s, s.provider(t, time.Now), spec)
		return hit()
	})
}

func TestComputeDeletionIsGoneOnWithByTheSameProcess(t *testing.T) {
	everyShapeAndFailure(t, func(t *testing.T, s *computeService, spec schema.SliceSpec, f failure) bool {
		p := s.provider(t, time.Now)
		carry(t, p, spec)
		hit := f.arm(s)
		_ = p.Delete(t.Context(), spec)
		_, _ = p.Inventory(t.Context(), spec.Stack)
		s.disarm()
		discard(t, s, p, spec)
		return hit()
	})
}

// finish ends all operations that are open.
func (s *computeService) finish() {
	s.do(func() {
		for _, op := range s.operations {
			op.Status = computepb.Operation_DONE.Enum()
		}
	})
}

func TestComputeGroupKilledBetweenAnyTwoSteps(t *testing.T) {
	stages := []string{"templates.insert", "policies.insert", "groups.insert", "resizes.insert"}
	spec := gcetest.Spec("flex", gcetest.OfTPU("v6e-16", 4), gcetest.FlexStart)
	for steps := range len(stages) {
		for _, wanted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d steps, wanted %t", steps+1, wanted), func(t *testing.T) {
				s := newComputeService(t)
				for _, each := range stages {
					s.slow[each] = true
				}
				first := s.provider(t, time.Now)
				for i := range steps + 1 {
					if err := first.Create(t.Context(), spec); err != nil {
						t.Fatalf("create: %v", err)
					}
					if n := s.counts(stages[i]); n != 1 {
						t.Fatalf("after %d steps there were %d of %s", i+1, n, stages[i])
					}
					s.finish()
				}
				s.do(func() { clear(s.slow) })
				next := s.provider(t, time.Now)
				if wanted {
					carry(t, next, spec)
					if left := s.left(); len(left) != parts(spec) {
						t.Errorf("there is %v, want %d resources", left, parts(spec))
					}
					return
				}
				discard(t, s, next, spec)
			})
		}
	}
}

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

func decodeJSON(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
