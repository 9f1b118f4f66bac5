package apply

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// oneSlice is a stack with a slice of a cloud that runs.
func oneSlice(at time.Time) *state.Document {
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	spec := schema.SliceSpec{Name: "a-0", Owner: addr, Provider: schema.ProviderGCP, TPU: "v5litepod-16", Hosts: 4, Zone: "us-west4-a"}
	return &state.Document{
		Lineage: "abcdefghijklmnopqrstuvwxyz",
		Slices:  map[string]*state.Slice{spec.Name: {Spec: spec, Listed: true, PendingSince: at, UpAt: at}},
		Jobs: map[schema.Address]*state.Job{addr: {
			ID: "id", Spec: &schema.Job{Addr: addr}, Slices: []string{spec.Name},
			Attempts: []state.Attempt{{Number: 1, Slices: []string{spec.Name}, ReadyAt: at}}, Attempt: 1,
		}},
	}
}

// TestLedgerOfWeeks: with a controller that is killed between any two writes, another that
// takes over and the former one that still writes what it had, the ledger has every moment of two
// weeks once; days that are over are one object each.
func TestLedgerOfWeeks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		s := storetest.NewMemory()
		begin := time.Date(2026, 10, 28, 7, 0, 0, 0, time.UTC)
		now, end := begin, begin.AddDate(0, 0, 14)
		saved := oneSlice(begin)
		killed := errors.New("killed")
		writes := 1 << 30 // until it is killed
		valid := func() error {
			if writes--; writes < 0 {
				return killed
			}
			return nil
		}
		l := &ledger{store: s, epoch: 1, valid: valid}
		for now.Before(end) {
			now = now.Add(time.Duration(rapid.IntRange(1, 30*3600).Draw(t, "seconds")) * time.Second)
			doc := *saved
			doc.Metering = accounting.Meter(accounting.Input{Doc: saved, Now: now})
			saved = &doc
			closed := doc.Metering.Closed
			if rapid.IntRange(0, 3).Draw(t, "killed") == 0 {
				writes = rapid.IntRange(0, 4).Draw(t, "after writes")
			}
			err := l.write(ctx, closed, now)
			if err == nil {
				err = l.tidy(ctx, now)
			}
			switch {
			case errors.Is(err, killed): // the next one finds what was saved
				former := *l
				l = &ledger{store: s, epoch: l.epoch + 1, valid: valid}
				writes = 1 << 30
				if rapid.Bool().Draw(t, "the former one goes on for a moment") {
					former.valid = func() error { return nil }
					_ = former.write(ctx, closed, now)
					_ = former.tidy(ctx, now)
				}
			case err != nil:
				t.Fatal(err)
			default:
				writes = 1 << 30
				kept, trimmed := *doc.Metering, doc
				kept.Closed, trimmed.Metering = nil, &kept
				saved = &trimmed
			}
		}
		all, err := ReadUsage(ctx, s, saved, begin, now)
		if err != nil {
			t.Fatal(err)
		}
		at := begin
		for i := range all {
			if !all[i].From.Equal(at) {
				t.Fatalf("after %v follows %v: %+v", at, all[i].From, all)
			}
			at = all[i].To
		}
		if !at.Equal(now) {
			t.Fatalf("the ledger ends at %v, and it is %v", at, now)
		}
		if err := l.write(ctx, saved.Metering.Closed, now); err != nil {
			t.Fatal(err)
		}
		l.tidied = ""
		if err := l.tidy(ctx, now); err != nil {
			t.Fatal(err)
		}
		wantDays(t, s, now)
	})
}

// A state that was lost and made again goes on with what the ledger says of the month.
func TestMonthIsRestored(t *testing.T) {
	begin := time.Date(2026, 11, 3, 7, 0, 0, 0, time.UTC)
	s, doc := storetest.NewMemory(), oneSlice(begin)
	for _, now := range []time.Time{begin, begin.Add(30 * time.Hour)} {
		next := *doc
		next.Metering = accounting.Meter(accounting.Input{Doc: doc, Now: now})
		doc = &next
	}
	l := &ledger{store: s, epoch: 1, valid: func() error { return nil }}
	if err := l.write(t.Context(), doc.Metering.Closed, begin); err != nil {
		t.Fatal(err)
	}
	again, err := restoreMetering(t.Context(), s, oneSlice(begin), begin.Add(31*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := doc.Metering.Spent[""].Closed
	if got := again.Metering.Spent[""].Used; got != want || want.High == 0 {
		t.Errorf("restored %v, want %v", got, want)
	}
	if kept, err := restoreMetering(t.Context(), s, doc, begin); err != nil || kept != doc {
		t.Errorf("a state with a metering was changed: %v", err)
	}
}

// wantDays checks that days that are over are one object each.
func wantDays(t *rapid.T, s store.Store, now time.Time) {
	listed, err := s.List(t.Context(), store.UsagePrefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range listed {
		if day := store.UsageDay(a.Key); day < now.Format(time.DateOnly) && a.Key != store.UsageDayKey(day) {
			t.Fatalf("%s is left of a day that is over", a.Key)
		}
	}
}

// TestLedgerIsSmall holds what docs state: bytes of a day of a slice, by how much happens to it.
func TestLedgerIsSmall(t *testing.T) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ changes, most int }{{1, 60}, {10, 250}} {
		const slices = 1000
		var all []state.UsageInterval
		for i := range slices {
			doc := oneSlice(begin)
			m := accounting.Meter(accounting.Input{Doc: doc, Now: begin})
			one := *m.Open["a-0"]
			one.Slice = fmt.Sprintf("train-%d-0-%08x", i, i*7919)
			one.JobID = fmt.Sprintf("train-%08x", i*104729)
			for k := range c.changes {
				one.From = begin.Add(time.Duration(k) * 24 * time.Hour / time.Duration(c.changes)).Add(time.Duration(i*37) * time.Millisecond)
				one.To = one.From.Add(24*time.Hour/time.Duration(c.changes) - time.Minute)
				one.Attempt = k + 1
				all = append(all, one)
			}
		}
		data, err := store.EncodeUsage(accounting.Merge(all))
		if err != nil {
			t.Fatal(err)
		}
		each := len(data) / slices
		t.Logf("%d changes a day: %d bytes a slice and day", c.changes, each)
		if each > c.most {
			t.Errorf("%d bytes a slice and day with %d changes, want at most %d", each, c.changes, c.most)
		}
	}
}
