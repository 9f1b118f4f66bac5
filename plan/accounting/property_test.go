package accounting

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// history is a stack whose document changes, is saved and lost, beside a ledger, and an
// oracle that adds up time by the documents that were saved.
type history struct {
	t          *rapid.T
	now        time.Time
	doc, saved *state.Document
	ledger     []state.UsageInterval
	made       int
	hours      map[string]float64       // by slice, use, owner and day
	dollars    map[string]state.Dollars // by month and namespace
}

func newHistory(t *rapid.T) *history {
	doc := &state.Document{Lineage: "abcdefghijklmnopqrstuvwxyz", Slices: map[string]*state.Slice{}, Jobs: map[schema.Address]*state.Job{}}
	doc.Desired.Namespaces = []schema.Namespace{{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}}}
	return &history{
		t: t, now: time.Date(2026, 1, 30, 20, 0, 0, 0, time.UTC), doc: doc, saved: doc,
		hours: map[string]float64{}, dollars: map[string]state.Dollars{},
	}
}

func (h *history) change() {
	h.doc = h.doc.Clone()
	names := slices.Sorted(maps.Keys(h.doc.Slices))
	what := rapid.IntRange(0, 5).Draw(h.t, "change")
	if len(names) == 0 || what == 0 {
		h.made++
		name := fmt.Sprintf("s%d", h.made)
		tpu := rapid.SampledFrom([]string{"v5litepod-16", "v6e-8"}).Draw(h.t, "type")
		spec := schema.SliceSpec{
			Name: name, Owner: schema.Address{Kind: schema.KindJob, Name: "j" + name}, Provider: schema.ProviderGCP, TPU: tpu, Hosts: 2, Zone: "us-west4-a",
			Preemptible: rapid.Bool().Draw(h.t, "spot"),
		}
		h.doc.Slices[name] = &state.Slice{Spec: spec, PendingSince: h.now, Listed: rapid.Bool().Draw(h.t, "listed")}
		job := &state.Job{ID: "id-" + name, Spec: &schema.Job{Addr: spec.Owner, User: "ann"}, Slices: []string{name}}
		if rapid.Bool().Draw(h.t, "in a namespace") {
			job.Spec.Namespace = "rl"
		}
		h.doc.Jobs[spec.Owner] = job
		return
	}
	name := rapid.SampledFrom(names).Draw(h.t, "slice")
	s := *h.doc.Slices[name]
	job := *h.doc.Jobs[s.Spec.Owner]
	switch what {
	case 1:
		delete(h.doc.Slices, name)
		return
	case 2:
		if !s.Listed {
			s.Listed, s.PendingSince = true, h.now
		} else {
			s.UpAt = h.now
		}
	case 3: // another attempt begins, gets ready or ends
		job.Attempts = slices.Clone(job.Attempts)
		switch last := job.Last(); {
		case last == nil || last.Outcome != "":
			job.Attempt++
			job.Attempts = append(job.Attempts, state.Attempt{Number: job.Attempt, Slices: []string{name}})
		case last.ReadyAt.IsZero():
			last.ReadyAt = h.now
		default:
			last.Outcome, last.EndedAt = schema.TaskPreempted, h.now
		}
	case 4:
		s.Terminating = state.Termination{Cause: state.CauseEnded}
	case 5:
		h.doc.Desired.Providers = []schema.Provider{{Name: schema.ProviderGCP, Offers: []schema.Market{
			{Name: "v6e", OnDemand: float64(rapid.IntRange(1, 9).Draw(h.t, "offer"))},
		}}}
	}
	h.doc.Slices[name], h.doc.Jobs[s.Spec.Owner] = &s, &job
}

// save is what apply does: the metering is brought up to date, and the document is saved.
func (h *history) save() {
	was := h.saved.Metering
	next := *h.doc
	next.Metering = Meter(Input{Doc: h.doc, Now: h.now})
	h.count(was, &next)
	h.doc, h.saved = &next, &next
}

// count is the oracle: until now each slice was used as the last saved metering says, and a new
// one as the document says since it was first listed.
func (h *history) count(was *state.Metering, next *state.Document) {
	at := next.Metering.At
	if was != nil {
		for name, open := range was.Open {
			s := next.Slices[name]
			gone := s == nil || !s.Listed
			turned := at
			if is := next.Metering.Open[name]; is != nil && !continues(open, is) {
				turned = later(earlier(h.recorded(open, is, s, at), at), open.From)
			}
			h.add(*open, later(open.From, was.At), turned, gone && at.Sub(was.At) > Gap)
			h.sub(*open, turned, was.At) // what was counted before it was known that it was used otherwise
			if is := next.Metering.Open[name]; is != nil && !continues(open, is) {
				h.add(*is, turned, at, false)
			}
		}
	}
	for name, is := range next.Metering.Open {
		if was != nil && was.Open[name] != nil {
			continue
		}
		i := *is
		h.addNew(i, next.Slices[name], at)
	}
}

// recorded is when a slice began to be used otherwise, by the document, now if that does not say.
func (h *history) recorded(open, is *state.UsageInterval, s *state.Slice, at time.Time) time.Time {
	last := h.doc.Jobs[s.Spec.Owner].Last()
	switch {
	case !s.Terminating.IsZero():
	case is.Use == state.UseRunning && open.Attempt == is.Attempt:
		return last.ReadyAt
	case is.Use == state.UseWaiting && last != nil && open.Attempt == last.Number:
		return last.EndedAt
	}
	return at
}

// addNew counts a slice that was not metered: one whose attempt is ready was starting before.
func (h *history) addNew(i state.UsageInterval, s *state.Slice, at time.Time) {
	from := s.PendingSince
	if from.After(at) {
		from = at
	}
	from = later(from, MonthOf(at))
	switch ready := h.doc.Jobs[s.Spec.Owner].Last(); {
	case at.Sub(from) > Gap:
		h.add(i, from, at, true)
	case i.Use == state.UseRunning && from.Before(ready.ReadyAt):
		up := earlier(ready.ReadyAt, at)
		starting := i
		starting.Use = state.UseStarting
		h.add(starting, from, up, false)
		h.add(i, up, at, false)
	default:
		h.add(i, from, at, false)
	}
}

func (h *history) add(i state.UsageInterval, from, to time.Time, estimated bool) {
	for from.Before(to) { // minute by minute would be simpler, and takes too long
		end := earlier(midnightAfter(from), to)
		hours := end.Sub(from).Hours()
		h.hours[key(&i, from)] += hours
		d := state.Dollars{Low: i.PerHour.Low * hours, High: i.PerHour.High * hours}
		if estimated {
			d.Low = 0
		}
		month := MonthName(from) + " " + i.Namespace
		h.dollars[month] = h.dollars[month].Plus(d)
		from = end
	}
}

func (h *history) sub(i state.UsageInterval, from, to time.Time) {
	for from.Before(to) {
		end := earlier(midnightAfter(from), to)
		hours := end.Sub(from).Hours()
		h.hours[key(&i, from)] -= hours
		month := MonthName(from) + " " + i.Namespace
		h.dollars[month] = h.dollars[month].Plus(state.Dollars{Low: -i.PerHour.Low * hours, High: -i.PerHour.High * hours})
		from = end
	}
}

func key(i *state.UsageInterval, at time.Time) string {
	return fmt.Sprint(i.Slice, " ", i.Use, " ", i.Owner, " ", i.Attempt, " ", at.Format(time.DateOnly))
}

// flush writes closed intervals to the ledger. The state without them may not be saved any more.
func (h *history) flush() {
	if h.saved.Metering == nil {
		return
	}
	h.ledger = append(h.ledger, h.saved.Metering.Closed...)
	if rapid.Bool().Draw(h.t, "killed before the next save") {
		h.doc = h.saved
		return
	}
	kept := *h.saved.Metering
	kept.Closed = nil
	next := *h.saved
	next.Metering = &kept
	h.doc, h.saved = &next, &next
}

// TestLedgerIsWhatTheOracleCounts: whatever happens and whenever the controller is killed, the
// ledger and the state together have each moment of each slice once, and cost what the oracle
// adds up; so does the month's total in the state.
func TestLedgerIsWhatTheOracleCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0, 1, 2:
				h.change()
			case 3, 4:
				h.save()
			case 5:
				h.flush()
			case 6:
				h.doc = h.saved // killed
			case 7:
				h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int{-3600, 1, 7, 240, 290, 1800, 7 * 3600, 40 * 3600}).Draw(t, "seconds")) * time.Second)
			}
		}
		h.save()
		h.check()
	})
}

func (h *history) check() {
	all := append(slices.Clone(h.ledger), OfDocument(h.doc, h.doc.Metering.At)...)
	merged := Merge(all)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if again := Merge(append(all, merged...)); !slices.Equal(again, merged) {
		h.t.Fatalf("merged in another order: %v, want %v", again, merged)
	}
	hours, dollars := map[string]float64{}, map[string]state.Dollars{}
	for k := range merged {
		i := &merged[k]
		if k > 0 && merged[k-1].Slice == i.Slice && i.From.Before(merged[k-1].To) {
			h.t.Fatalf("%+v and %+v overlap", merged[k-1], *i)
		}
		if Day(i) != i.To.Add(-time.Millisecond).Format(time.DateOnly) {
			h.t.Fatalf("%+v is of two days", *i)
		}
		hours[key(i, i.From)] += i.Hours()
		month := MonthName(i.From) + " " + i.Namespace
		dollars[month] = dollars[month].Plus(Cost(i))
	}
	for k, want := range h.hours {
		if !near(hours[k], want) {
			h.t.Fatalf("%s has %v hours, want %v\n%+v", k, hours[k], want, merged)
		}
		delete(hours, k)
	}
	for k, got := range hours {
		h.t.Fatalf("%s has %v hours, want none", k, got)
	}
	for month, want := range h.dollars {
		if got := dollars[month]; !near(got.Low, want.Low) || !near(got.High, want.High) {
			h.t.Fatalf("%s costs %v, want %v", month, got, want)
		}
	}
	for namespace, s := range h.doc.Metering.Spent {
		want := h.dollars[h.doc.Metering.Month+" "+namespace]
		if !near(s.Used.Low, want.Low) || !near(s.Used.High, want.High) {
			h.t.Fatalf("the state says that %q has used %v, want %v", namespace, s.Used, want)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
