package apply_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func TestStepConvergesAndThenWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		writes := 0
		cfg := w.config()
		cfg.Store = &storetest.Faulty{Store: w, Before: func(op storetest.Op, key string) error {
			if op == storetest.OpPut && key == store.StateKey {
				writes++
			}
			return nil
		}}
		s := newStepper(t, cfg)
		accept(t, s, jobs(40))
		converge(t, s)
		for addr, j := range s.Document().Jobs {
			if j.Status != schema.JobRunning || !j.Ready {
				t.Errorf("%s: status %s, ready %v, want running and ready", addr, j.Status, j.Ready)
			}
		}
		if len(w.created) != 40 {
			t.Errorf("created %d slices, want 40, each once", len(w.created))
		}
		if err := s.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := writes
		for range 20 {
			if _, err := s.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if writes != before {
			t.Errorf("20 steps with nothing to do wrote the state %d times", writes-before)
		}
	})
}

func TestStateIsSavedAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.slow = 300 * time.Millisecond
		var saves []time.Time
		cfg := w.config()
		cfg.Parallelism = 2
		cfg.Store = &storetest.Faulty{Store: w, After: func(op storetest.Op, key string) error {
			if op == storetest.OpPut && key == store.StateKey {
				saves = append(saves, time.Now())
			}
			return nil
		}}
		s := newStepper(t, cfg)
		accept(t, s, jobs(40))
		converge(t, s)
		if len(saves) < 3 {
			t.Fatalf("only %d saves; the test shows nothing", len(saves))
		}
		for i := 1; i < len(saves); i++ {
			if d := saves[i].Sub(saves[i-1]); d < apply.SaveInterval {
				t.Errorf("save %d came %s after the one before, want at least %s", i, d, apply.SaveInterval)
			}
		}
	})
}

// What is not desired any more is deleted as fast as the provider and the store allow, not
// at the pace of saves: an eager stepper saves once a deletion waits for that.
func TestDeletionsWaitForNoSaveInterval(t *testing.T) {
	for eager, most := range map[bool]time.Duration{true: 300 * time.Millisecond, false: 10 * apply.SaveInterval} {
		synctest.Test(t, func(t *testing.T) {
			cfg := newWorld().config()
			cfg.Eager = eager
			s := newStepper(t, cfg)
			accept(t, s, jobs(6))
			converge(t, s)
			began := time.Now()
			accept(t, s, schema.Desired{})
			converge(t, s)
			if took := time.Since(began); took > most || !eager && took < apply.SaveInterval/2 {
				t.Errorf("eager %v: got %s, want at most %s, and about %s if it is not", eager, took, most, apply.SaveInterval)
			}
		})
	}
}

func TestParallelismIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.slow = 50 * time.Millisecond
		cfg := w.config()
		cfg.Parallelism = 5
		s := newStepper(t, cfg)
		accept(t, s, jobs(30))
		converge(t, s)
		if w.most != 5 {
			t.Errorf("at most %d calls at once, want 5", w.most)
		}
	})
}

// Calls to a cloud that hang take no slot of what is written to the store: jobs on
// slices that are there go on.
func TestHangingProviderHoldsUpNoAssignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg := w.config()
		cfg.Parallelism = 2
		s := newStepper(t, cfg)
		accept(t, s, jobs(3))
		converge(t, s)
		w.slow = time.Minute
		changed := jobs(9)
		for i := range 3 {
			changed.Jobs[i].Command = []schema.Text{schema.Plain("changed")}
		}
		first := changed.Jobs[0].Addr
		accept(t, s, changed)
		for began := time.Now(); time.Since(began) < 30*time.Second && s.Document().Jobs[first].Attempt < 2; {
			next, err := s.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.Wait(t.Context(), next)
		}
		if got := s.Document().Jobs[first].Attempt; got != 2 {
			t.Errorf("attempt %d of %s while creations hang, want 2: it restarts in place", got, first)
		}
		s.Drain(t.Context())
	})
}

// Draining lets calls that run end and begins none that wait for a slot.
func TestDrainBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.slow = time.Second
		cfg := w.config()
		cfg.Parallelism = 3
		s := newStepper(t, cfg)
		accept(t, s, jobs(30))
		if _, err := s.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Drain(t.Context())
		if !s.Idle() {
			t.Error("not idle after draining")
		}
		if len(w.created) != 3 {
			t.Errorf("%d slices were created, want the 3 under way", len(w.created))
		}
	})
}

func TestFailedCreateIsRecordedAndRetried(t *testing.T) {
	for _, tt := range []struct {
		kind  schema.ErrorKind
		after time.Duration // least time until the second try
	}{
		{schema.ErrorCapacity, time.Second},
		{schema.ErrorUnavailable, time.Second},
		{schema.ErrorQuota, time.Minute},
		{schema.ErrorPermission, 10 * time.Second},
		{schema.ErrorInvalid, 10 * time.Second},
	} {
		t.Run(string(tt.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				var tries []time.Time
				w.fail = func(string, string) error {
					tries = append(tries, time.Now())
					if len(tries) < 3 {
						return &providers.Error{Kind: tt.kind, Op: "create slice", Err: errInjected}
					}
					return nil
				}
				told := 0
				cfg := w.config()
				cfg.OnError = func(plan.Action, error) { told++ }
				s := newStepper(t, cfg)
				accept(t, s, jobs(1))
				for len(tries) < 2 {
					next, err := s.Step(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					s.Wait(t.Context(), next)
				}
				if d := tries[1].Sub(tries[0]); d < tt.after {
					t.Errorf("tried again after %s, want at least %s", d, tt.after)
				}
				for _, sl := range s.Document().Slices {
					if !strings.Contains(sl.Error, "injected") || sl.Tries == 0 {
						t.Errorf("slice records error %q after %d tries, want the injected one", sl.Error, sl.Tries)
					}
					if quota := tt.kind == schema.ErrorQuota; sl.OverQuota != quota {
						t.Errorf("slice records that a quota is used up: %t, want %t", sl.OverQuota, quota)
					}
				}
				converge(t, s)
				for _, sl := range s.Document().Slices {
					if sl.Error != "" || sl.Tries != 0 || sl.OverQuota {
						t.Errorf("slice still records %q after it came up", sl.Error)
					}
				}
				if told != 2 {
					t.Errorf("%d errors were told, want 2", told)
				}
			})
		})
	}
}

// A write that won although its reply was lost is no conflict.
func TestAmbiguousSaveIsSettledByItsNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		lost := 0
		cfg := w.config()
		cfg.Store = &storetest.Faulty{Store: w, After: func(op storetest.Op, key string) error {
			if op == storetest.OpPut && key == store.StateKey {
				if lost++; lost == 1 {
					return store.ErrConflict // what a client's retry of the won write reports
				}
			}
			return nil
		}}
		s := newStepper(t, cfg)
		accept(t, s, jobs(1))
		converge(t, s)
		if err := s.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lost < 2 {
			t.Errorf("the state was written %d times, want more after the ambiguous one", lost)
		}
	})
}

// Another client's write ends the right to go on.
func TestForeignWriteIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := newStepper(t, w.config())
		accept(t, s, jobs(1))
		other := newStepper(t, w.config())
		accept(t, other, jobs(2))
		time.Sleep(2 * apply.SaveInterval)
		for range 100 {
			next, err := s.Step(t.Context())
			if errors.Is(err, apply.ErrStateMoved) {
				return
			}
			if err != nil {
				t.Fatalf("got %v, want ErrStateMoved", err)
			}
			s.Wait(t.Context(), next)
		}
		t.Error("stepped on although another client wrote the state")
	})
}

// A lease that is lost between two steps stops every effect, also of what is
// queued already.
func TestNoEffectWithoutLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.slow = time.Second
		var lost atomic.Bool
		cfg := w.config()
		cfg.Parallelism = 1
		cfg.Valid = func() error {
			if lost.Load() {
				return store.ErrLeaseLost
			}
			return nil
		}
		s := newStepper(t, cfg)
		accept(t, s, jobs(5))
		if _, err := s.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		lost.Store(true)
		time.Sleep(10 * time.Second)
		if _, err := s.Step(t.Context()); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("step without a lease: %v, want ErrLeaseLost", err)
		}
		if err := s.Accept(t.Context(), apply.Accept(s.Document(), apply.Request{})); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("save without a lease: %v, want ErrLeaseLost", err)
		}
		s.Drain(t.Context())
		if len(w.created) != 1 {
			t.Errorf("%d slices were created, want only the one under way", len(w.created))
		}
	})
}

// A mailbox that cannot be read is an error; nothing follows from it.
func TestUnreadableMailboxStopsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		broken := false
		cfg := w.config()
		cfg.Store = &storetest.Faulty{Store: w, Before: func(op storetest.Op, _ string) error {
			if op == storetest.OpList && broken {
				return errInjected
			}
			return nil
		}}
		s := newStepper(t, cfg)
		accept(t, s, jobs(1))
		converge(t, s)
		doc := s.Document()
		broken = true
		if _, err := s.Step(t.Context()); !errors.Is(err, errInjected) {
			t.Errorf("got %v, want the injected error", err)
		}
		if s.Document() != doc {
			t.Error("the document changed although nothing could be seen")
		}
	})
}

func TestLoadStateOfNothingIsNew(t *testing.T) {
	doc, generation, err := apply.LoadState(context.Background(), storetest.NewMemory())
	if err != nil || generation != store.Absent || len(doc.Lineage) != 26 || doc.FormatVersion != state.FormatVersion {
		t.Errorf("got %+v, generation %d, %v", doc, generation, err)
	}
}
