package accounting

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// An interval stays the same value as long as nothing of it changes, and no longer.
func TestIntervalGoesOn(t *testing.T) {
	owner := schema.Address{Kind: schema.KindJob, Name: "a"}
	now := time.Date(2026, 1, 30, 12, 0, 0, 0, time.UTC)
	slice := &state.Slice{
		Spec:   schema.SliceSpec{Name: "s", Owner: owner, Provider: schema.ProviderLocal, Hosts: 1},
		Listed: true, UpAt: now, PendingSince: now,
	}
	job := &state.Job{ID: "a-1", Spec: &schema.Job{Addr: owner}, Slices: []string{"s"}}
	job.Attempts = []state.Attempt{{Number: 1, Slices: []string{"s"}, ReadyAt: now}}
	for name, c := range map[string]struct {
		later  time.Duration
		change func(doc *state.Document)
		unseen bool // at the first metering
		goesOn bool
	}{
		"nothing changes": {later: time.Minute, goesOn: true},
		"its attempt ends": {later: time.Minute, change: func(doc *state.Document) {
			ended := *job
			ended.Attempts = []state.Attempt{{Number: 1, Slices: []string{"s"}, ReadyAt: now, EndedAt: now.Add(time.Second), Outcome: schema.TaskFailed}}
			doc.Jobs[owner] = &ended
		}},
		"another job holds it": {later: time.Minute, change: func(doc *state.Document) {
			doc.Jobs[owner] = &state.Job{ID: "a-1", Spec: job.Spec}
			other := schema.Address{Kind: schema.KindJob, Name: "b"}
			doc.Jobs[other] = &state.Job{ID: "b-1", Spec: &schema.Job{Addr: other}, Slices: []string{"s"}}
		}},
		"it is gone":       {later: time.Minute, change: func(doc *state.Document) { delete(doc.Slices, "s") }},
		"midnight passes":  {later: 13 * time.Hour},
		"it is seen again": {later: time.Minute, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := &state.Document{Slices: map[string]*state.Slice{"s": slice}, Jobs: map[schema.Address]*state.Job{owner: job}}
			doc.Metering = Meter(Input{Doc: doc, Now: now})
			if c.unseen {
				doc.Metering = Meter(Input{Doc: doc, Now: now, Listed: func(string) bool { return false }})
			}
			was := doc.Metering.Open["s"]
			if was == nil || was.Use != state.UseRunning || was.UnseenSince.IsZero() == c.unseen {
				t.Fatalf("the first metering has %+v", was)
			}
			if c.change != nil {
				c.change(doc)
			}
			is := Meter(Input{Doc: doc, Now: now.Add(c.later)}).Open["s"]
			if (is == was) != c.goesOn {
				t.Errorf("the interval %+v became %+v; want the same value: %v", was, is, c.goesOn)
			}
			if is != nil && !is.UnseenSince.IsZero() {
				t.Errorf("it is listed and unseen since %s", is.UnseenSince)
			}
		})
	}
}
