package state_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Edits of documents of which each was made of the one before report what comparing them does,
// whether or not each change was noted, and also with more entries noted than were changed.
func TestEdits(t *testing.T) {
	job := func(n int) schema.Address { return schema.Address{Kind: schema.KindJob, Name: fmt.Sprint(n)} }
	newJob := func(n int) *state.Job { return &state.Job{Spec: &schema.Job{Addr: job(n)}} }
	newSlice := func(n int) *state.Slice { return &state.Slice{Spec: schema.SliceSpec{Name: fmt.Sprint(n)}} }
	rapid.Check(t, func(t *rapid.T) {
		doc := &state.Document{Jobs: map[schema.Address]*state.Job{job(0): newJob(0)}, Slices: map[string]*state.Slice{"0": newSlice(0)}}
		from, covered := doc, true
		var e state.Edits
		e.Begin(doc)
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			next := *doc
			next.Jobs, next.Slices = maps.Clone(doc.Jobs), maps.Clone(doc.Slices)
			numbers := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 3).Draw(t, "changed")
			var addrs []schema.Address
			var names []string
			for _, n := range numbers {
				addrs, names = append(addrs, job(n)), append(names, fmt.Sprint(n))
				switch rapid.IntRange(0, 4).Draw(t, "how") {
				case 0:
					delete(next.Jobs, job(n))
				case 1:
					next.Jobs[job(n)] = newJob(n)
				case 2:
					next.Slices[fmt.Sprint(n)] = newSlice(n)
				case 3:
					delete(next.Slices, fmt.Sprint(n))
				case 4: // not at all
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "unnoted") > 0 {
				e.Note(doc, &next, addrs, names)
			} else {
				covered = false
			}
			doc = &next
		}
		if got := e.Cover(from, doc); got != covered {
			t.Fatalf("edits cover the documents: got %t, want %t", got, covered)
		}
		var got, want []string
		report := func(all *[]string) (func(schema.Address, *state.Job, *state.Job), func(string, *state.Slice, *state.Slice)) {
			return func(addr schema.Address, was, is *state.Job) {
					*all = append(*all, fmt.Sprintf("job %s %p %p", addr, was, is))
				},
				func(name string, was, is *state.Slice) {
					*all = append(*all, fmt.Sprintf("slice %s %p %p", name, was, is))
				}
		}
		jobs, names := report(&got)
		e.Differences(from, doc, jobs, names)
		jobs, names = report(&want)
		state.Differences(from.Jobs, doc.Jobs, jobs)
		state.Differences(from.Slices, doc.Slices, names)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		compared := state.NewBaseline(from)
		if got, want := e.JobChanges(from, doc), compared.JobChanges(doc); covered && !sameChanges(got, want) || !covered && got != nil {
			t.Fatalf("got %+v, want %+v, covered %t", got, want, covered)
		}
		expecting := state.NewBaseline(from)
		expecting.Expect(doc, &e)
		for _, to := range []*state.Document{doc, from, doc} {
			got, err := expecting.Changes(to)
			want, wantErr := compared.Changes(to)
			if err != nil || wantErr != nil {
				t.Fatal(err, wantErr)
			}
			slices.Sort(got.SlicesGone)
			slices.Sort(want.SlicesGone)
			slices.SortFunc(got.JobsGone, schema.Address.Compare)
			slices.SortFunc(want.JobsGone, schema.Address.Compare)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("a baseline that expects edits: got %+v, want %+v", got, want)
			}
			expecting.Advance(to)
			compared.Advance(to)
		}
	})
}

func sameChanges(a, b *state.JobChanges) bool {
	slices.SortFunc(a.Gone, schema.Address.Compare)
	slices.SortFunc(b.Gone, schema.Address.Compare)
	return state.SameMap(a.Was, b.Was) && maps.Equal(a.Set, b.Set) && slices.Equal(a.Gone, b.Gone)
}
