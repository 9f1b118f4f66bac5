package snapshot

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestJobAt: JobAt returns what next has, whatever was asked and changed before, and in whichever
// order; drafts of one snapshot do not see each other's changes.
func TestJobAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var desired schema.Desired
		var addrs []schema.Address
		doc := &state.Document{Jobs: map[schema.Address]*state.Job{}}
		recorded := rapid.Bool().Draw(t, "recorded")
		for i := range 8 {
			addrs = append(addrs, schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(i)})
			if i < 6 { // the others are not desired
				desired.Jobs = append(desired.Jobs, schema.Job{Addr: addrs[i]})
			}
			if recorded && i%2 == 0 {
				doc.Jobs[addrs[i]] = &state.Job{}
			}
		}
		s := Take(Input{Desired: &desired, Doc: doc, Obs: &plan.Observed{}})
		if rapid.Bool().Draw(t, "final") {
			s = s.Final()
		}
		d := s.Draft()
		others := map[*Evidence]map[schema.Address]*state.Job{}
		t.Repeat(map[string]func(*rapid.T){
			"expect": func(*rapid.T) { ExpectAll(d.Draft) },
			"walk": func(*rapid.T) {
				for i := range desired.Jobs {
					d.JobAt(addrs[i])
				}
			},
			"put": func(t *rapid.T) { PutJob(d.Draft, rapid.SampledFrom(addrs).Draw(t, "addr"), &state.Job{}) },
			"drop": func(t *rapid.T) {
				DropJob(d.Draft, rapid.SampledFrom(addrs).Draw(t, "addr"))
			},
			"edit": func(t *rapid.T) {
				if addr := rapid.SampledFrom(addrs).Draw(t, "addr"); d.Next.Jobs[addr] != nil {
					d.Edit(addr)
				}
			},
			"stage": func(*rapid.T) {
				others[d] = maps.Clone(d.Next.Jobs)
				d = d.Snapshot().Draft()
			},
			"": func(t *rapid.T) {
				addr := rapid.SampledFrom(addrs).Draw(t, "asked")
				if got, want := d.JobAt(addr), d.Next.Jobs[addr]; got != want {
					t.Fatalf("JobAt(%s) is %p, next has %p", addr, got, want)
				}
				for other, jobs := range others {
					if got, want := other.JobAt(addr), jobs[addr]; got != want {
						t.Fatalf("JobAt(%s) of a stage before is %p, want %p", addr, got, want)
					}
				}
			},
		})
	})
}
