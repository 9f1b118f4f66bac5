package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Limits of the ledger.
const (
	keptDays   = 400  // days that are kept, so that a month can be compared with that of a year ago
	manyClosed = 1000 // closed intervals in the state that are written at once
)

// ledger keeps what slices were used for, in objects by day beside the state. An interval is
// closed in the state first; it is written here once that state is saved, and leaves the state
// after that. So a crash writes some twice, and loses none; readers and compaction merge what
// stands twice.
type ledger struct {
	store store.Store
	epoch uint64
	valid func() error

	written int       // objects of this epoch
	retryAt time.Time // after a write that failed
	tidied  string    // the day on which former days were joined last
}

// due reports whether closed intervals of a saved state are to be written now.
func (l *ledger) due(m *state.Metering, now time.Time) bool {
	if m == nil || len(m.Closed) == 0 || now.Before(l.retryAt) {
		return false
	}
	oldest := m.Closed[0].To
	return len(m.Closed) >= manyClosed || now.Sub(oldest) >= accounting.Heartbeat
}

// write adds intervals, which the saved state has.
func (l *ledger) write(ctx context.Context, closed []state.UsageInterval, now time.Time) error {
	byDay := map[string][]state.UsageInterval{}
	for i := range closed {
		day := accounting.Day(&closed[i])
		byDay[day] = append(byDay[day], closed[i])
	}
	for day, intervals := range byDay {
		data, err := store.EncodeUsage(intervals)
		if err != nil {
			return err
		}
		if err := l.valid(); err != nil {
			return err
		}
		if _, err := l.store.Put(ctx, store.UsageKey(day, l.epoch, l.written), data, store.Any); err != nil {
			l.retryAt = now.Add(accounting.Heartbeat)
			return fmt.Errorf("record usage: %w", err)
		}
	}
	l.written++
	return nil
}

// tidy joins the objects of each day that is over, once a day, and removes days that are too
// old.
func (l *ledger) tidy(ctx context.Context, now time.Time) error {
	today := now.UTC().Format(time.DateOnly)
	if l.tidied == today {
		return nil
	}
	listed, err := l.store.List(ctx, store.UsagePrefix)
	if err != nil {
		return fmt.Errorf("list the ledger of usage: %w", err)
	}
	oldest := now.UTC().AddDate(0, 0, -keptDays).Format(time.DateOnly)
	byDay := map[string][]store.Attrs{}
	for _, a := range listed {
		if day := store.UsageDay(a.Key); day != "" && day < today {
			byDay[day] = append(byDay[day], a)
		}
	}
	for day, objects := range byDay {
		switch {
		case day < oldest:
			err = l.remove(ctx, objects)
		case len(objects) > 1 || objects[0].Key != store.UsageDayKey(day):
			err = l.join(ctx, day, objects)
		}
		if err != nil {
			return err
		}
	}
	l.tidied = today
	return nil
}

// join writes the objects of a day as one.
func (l *ledger) join(ctx context.Context, day string, objects []store.Attrs) error {
	var all []state.UsageInterval
	want := store.Absent
	for _, a := range objects {
		object, err := l.store.Get(ctx, a.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read usage: %w", err)
		}
		if a.Key == store.UsageDayKey(day) {
			want = object.Generation
		}
		intervals, err := store.DecodeUsage(object.Data)
		if err != nil {
			return fmt.Errorf("read %s in %s: %w", a.Key, l.store.Location(), err)
		}
		all = append(all, intervals...)
	}
	data, err := store.EncodeUsage(accounting.Merge(all))
	if err != nil {
		return err
	}
	if err := l.valid(); err != nil {
		return err
	}
	if _, err := l.store.Put(ctx, store.UsageDayKey(day), data, want); err != nil {
		return fmt.Errorf("join the usage of %s: %w", day, err)
	}
	return l.remove(ctx, slices.DeleteFunc(slices.Clone(objects), func(a store.Attrs) bool { return a.Key == store.UsageDayKey(day) }))
}

func (l *ledger) remove(ctx context.Context, objects []store.Attrs) error {
	for _, a := range objects {
		if err := l.valid(); err != nil {
			return err
		}
		if err := l.store.Delete(ctx, a.Key); err != nil {
			return fmt.Errorf("remove old usage: %w", err)
		}
	}
	return nil
}

// ReadUsage returns the intervals of the ledger that begin on the days from one time to
// another, merged with those that a document has; open ones end at until.
func ReadUsage(ctx context.Context, s store.Store, doc *state.Document, since, until time.Time) ([]state.UsageInterval, error) {
	listed, err := s.List(ctx, store.UsagePrefix)
	if err != nil {
		return nil, fmt.Errorf("list the ledger of usage: %w", err)
	}
	first, last := since.UTC().Format(time.DateOnly), until.UTC().Format(time.DateOnly)
	var keys []string
	for _, a := range listed {
		if day := store.UsageDay(a.Key); day != "" && day >= first && day <= last {
			keys = append(keys, a.Key)
		}
	}
	objects, err := store.GetAll(ctx, s, keys)
	if err != nil {
		return nil, fmt.Errorf("read the ledger of usage: %w", err)
	}
	var all []state.UsageInterval
	for i := range objects {
		if objects[i].Key == "" {
			return ReadUsage(ctx, s, doc, since, until) // it was joined with others meanwhile
		}
		intervals, err := store.DecodeUsage(objects[i].Data)
		if err != nil {
			return nil, fmt.Errorf("read %s in %s: %w; fray cost cannot count that day without it: put it back, or remove it to count without", keys[i], s.Location(), err)
		}
		all = append(all, intervals...)
	}
	if doc != nil {
		all = append(all, accounting.OfDocument(doc, until)...)
	}
	return accounting.Merge(all), nil
}
