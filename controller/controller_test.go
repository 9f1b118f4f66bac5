package controller_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func run(t *testing.T, s store.Store, untilUndeclared bool) (ended <-chan error, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- controller.Run(ctx, controller.Config{
			Store: s, Command: "fray watch", Log: slog.New(slog.DiscardHandler), UntilUndeclared: untilUndeclared,
		})
	}()
	return done, cancel
}

func leader(t *testing.T, s store.Store) store.Lease {
	t.Helper()
	l, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// An apply that asks gets the lease soon, and the watch takes it back.
func TestGivesWayAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		ended, stop := run(t, s, false)
		time.Sleep(time.Second)
		if l := leader(t, s); l.Command != "fray watch" || !l.Live(time.Now()) {
			t.Fatalf("lease is %+v, want the watch to lead", l)
		}
		held, err := store.Acquire(t.Context(), s, store.LeaseConfig{Command: "fray apply"})
		if err != nil {
			t.Fatalf("the watch did not give way: %v", err)
		}
		epoch := held.Epoch()
		time.Sleep(time.Minute) // however long the apply takes
		if l := leader(t, s); l.Command != "fray apply" {
			t.Errorf("lease is %+v while the apply holds it", l)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if l := leader(t, s); l.Command != "fray watch" || l.Epoch <= epoch {
			t.Errorf("lease is %+v, want the watch to lead again under a later epoch than %d", l, epoch)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		if l := leader(t, s); !l.Released {
			t.Error("the lease was not released at the end")
		}
	})
}

// Of two watches one leads, and the other takes over when it ends.
func TestOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		firstEnded, stopFirst := run(t, s, false)
		time.Sleep(time.Second)
		first := leader(t, s).Holder
		secondEnded, stopSecond := run(t, s, false)
		time.Sleep(time.Minute)
		if got := leader(t, s).Holder; got != first {
			t.Errorf("the lease went from %s to %s though the first watch is well", first, got)
		}
		stopFirst()
		if err := <-firstEnded; err != nil {
			t.Errorf("the first ended with %v", err)
		}
		time.Sleep(time.Minute)
		if l := leader(t, s); l.Holder == first || !l.Live(time.Now()) {
			t.Errorf("lease is %+v, want the second watch to lead", l)
		}
		stopSecond()
		if err := <-secondEnded; err != nil {
			t.Errorf("the second ended with %v", err)
		}
	})
}

// A controller that an apply started ends when none is declared any more, and waits until
// then for the client that records the outputs last.
func TestEndsWhenUndeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		declare := func(d schema.Desired, outputs map[string]schema.Output) {
			held, err := store.Acquire(t.Context(), s, store.LeaseConfig{Command: "fray apply"})
			if err != nil {
				t.Fatal(err)
			}
			st, err := apply.New(t.Context(), apply.Config{Store: s, Epoch: held.Epoch(), Valid: held.Valid})
			if err != nil {
				t.Fatal(err)
			}
			accepted := apply.Accept(st.Document(), apply.Request{Desired: d})
			accepted.Outputs = outputs
			if err := st.Accept(t.Context(), accepted); err != nil {
				t.Fatal(err)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		outputs := map[string]schema.Output{"address": {Value: json.RawMessage(`"10.0.0.1"`)}}
		declare(schema.Desired{Controller: &schema.Controller{Provider: schema.ProviderLocal}}, outputs)
		ended, stop := run(t, s, true)
		defer stop()
		time.Sleep(time.Minute)
		select {
		case err := <-ended:
			t.Fatalf("ended (%v) though it is declared", err)
		default:
		}
		declare(schema.Desired{}, outputs)
		time.Sleep(9 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("ended (%v) before the outputs could be recorded", err)
		default:
		}
		declare(schema.Desired{}, nil)
		time.Sleep(5 * time.Second)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("ended with %v", err)
			}
		default:
			t.Error("goes on although everything is recorded")
		}
	})
}

// A client that never records them keeps the controller for a while only.
func TestEndsWithOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		doc := state.Document{
			FormatVersion: state.FormatVersion, Lineage: "l", Serial: 1, Revision: 1,
			Outputs: map[string]schema.Output{"address": {Value: json.RawMessage(`"10.0.0.1"`)}},
		}
		data, err := state.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
			t.Fatal(err)
		}
		ended, stop := run(t, s, true)
		defer stop()
		began := time.Now()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(began); took < 10*time.Second || took > time.Minute {
			t.Errorf("ended after %v, want ten seconds or a little more", took)
		}
	})
}
