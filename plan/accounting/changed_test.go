package accounting

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What is known to have changed saves a look at all else, and makes no other metering.
func TestMeterOfWhatHasChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		var since state.Edits
		var known Known
		unlisted := map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			was := h.doc
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				h.change()
				note(&since, was, h.doc)
			case 3: // another job holds a slice, or none
				names := slices.Sorted(maps.Keys(was.Slices))
				if len(names) == 0 {
					continue
				}
				h.doc = was.Clone()
				name := rapid.SampledFrom(names).Draw(t, "given away")
				taker := schema.Address{}
				if rapid.Bool().Draw(t, "taken") {
					taker = was.Slices[rapid.SampledFrom(names).Draw(t, "to the job of")].Spec.Owner
				}
				for addr, j := range was.Jobs {
					next := *j
					next.Slices = slices.DeleteFunc(slices.Clone(j.Slices), func(s string) bool { return s == name })
					if addr == taker {
						next.Slices = append(next.Slices, name)
					}
					h.doc.Jobs[addr] = &next
				}
				note(&since, was, h.doc)
			case 4:
				if name := rapid.SampledFrom([]string{"s1", "s2", "s3"}).Draw(t, "slice"); unlisted[name] {
					delete(unlisted, name)
				} else {
					unlisted[name] = true
				}
			case 5:
				h.now = h.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Minute, 20 * time.Minute, 7 * time.Hour}).Draw(t, "time passes"))
			}
			if rapid.Bool().Draw(t, "and is not metered") {
				continue
			}
			in := Input{Doc: h.doc, Now: h.now, Listed: func(name string) bool { return !unlisted[name] }}
			want := Meter(in)
			in.Since = &since
			if rapid.IntRange(0, 9).Draw(t, "forgotten") > 0 {
				in.Known = &known
			}
			if rapid.IntRange(0, 9).Draw(t, "what is not listed is unknown") > 0 {
				in.Unlisted = maps.Clone(unlisted) // names of other slices do no harm
			}
			got := Meter(in)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			next := *h.doc
			next.Metering = got
			h.doc = &next
			since.Begin(h.doc)
		}
	})
}

func note(since *state.Edits, was, is *state.Document) {
	var jobs []schema.Address
	var names []string
	state.Differences(was.Jobs, is.Jobs, func(addr schema.Address, _, _ *state.Job) { jobs = append(jobs, addr) })
	state.Differences(was.Slices, is.Slices, func(name string, _, _ *state.Slice) { names = append(names, name) })
	since.Note(was, is, jobs, names)
}
