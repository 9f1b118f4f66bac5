package incremental

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// hosting is an actor's job, as its actor block makes it.
func hosting(names string) jobOption {
	return func(j *schema.Job) {
		j.Environment.Env = map[string]schema.Text{schema.ActorNamesVariable: schema.Plain(names)}
	}
}

// removedNames are the names of all removed actors that are on record, in order.
func (w *world) removedNames() []string {
	var names []string
	for _, r := range w.doc.RemovedActors {
		names = append(names, r.Names...)
	}
	slices.Sort(names)
	return names
}

// An actor that is declared no more is on record for a day, by whatever way it went.
func TestRemovedActorsAreRemembered(t *testing.T) {
	counter := newJob("counter", hosting(`["counter","counter_1"]`))
	for name, c := range map[string]struct {
		before, after schema.Desired
		want          []string
	}{
		"removed, with all that is declared": {configuration(counter), schema.Desired{}, []string{"counter", "counter_1"}},
		"removed, one of several":            {configuration(counter, newJob("other")), configuration(newJob("other")), []string{"counter", "counter_1"}},
		"renamed":                            {configuration(counter), configuration(newJob("counter", hosting(`["counter","meter"]`))), []string{"counter_1"}},
		"hosts none any more":                {configuration(counter), configuration(newJob("counter")), []string{"counter", "counter_1"}},
		"stays":                              {configuration(counter), configuration(counter), nil},
		"no actor":                           {configuration(newJob("plain")), schema.Desired{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.accept(c.before)
			w.run(20 * time.Second)
			w.accept(c.after)
			w.settle(2 * time.Minute)
			if got := w.removedNames(); !slices.Equal(got, c.want) {
				t.Fatalf("on record are %q, want %q", got, c.want)
			}
			for _, r := range w.doc.RemovedActors {
				if r.Namespace != counter.Namespace || r.At.IsZero() {
					t.Errorf("the record is %+v", r)
				}
			}
			w.now = w.now.Add(launch.Retention)
			w.step(time.Second)
			if got := w.removedNames(); got != nil {
				t.Errorf("a day later %q are still on record", got)
			}
		})
	}
}

// The number of records is bounded; the newest stay.
func TestRemovedActorsAreBounded(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	removed := map[string]state.RemovedActors{}
	for i := range launch.MaxRemembered + 2 {
		removed[fmt.Sprintf("j%06d", i)] = state.RemovedActors{At: noon.Add(-time.Duration(i/2) * time.Second)}
	}
	if at := launch.ForgetActorsAt(removed); at.After(noon) {
		t.Errorf("too many are to be forgotten at %s only", at)
	}
	var forgotten []string
	launch.ForgetActors(removed, noon, func(id string) { forgotten = append(forgotten, id) })
	if want := []string{"j010000", "j010001"}; !slices.Equal(forgotten, want) {
		t.Errorf("forgotten are %q, want %q", forgotten, want)
	}
}
