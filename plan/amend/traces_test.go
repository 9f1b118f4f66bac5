package amend_test

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What is left of an attempt that is over, in whichever way, is not enough to
// run the job again.
func TestRebuildStopsWhatIsOver(t *testing.T) {
	tests := []struct {
		name   string
		change func(w *world, first string)
	}{
		{"its slices are gone", func(w *world, _ string) { clear(w.slices) }},
		{"a slice was given to another job", func(w *world, first string) {
			a := w.assignments[first]
			a.Generation++
			a.Run = &state.Run{
				Job: address(t, "job.b"), JobID: "b-0123456789ab", Attempt: 1, Spec: at(t, "job.b", from("p", 1)),
				Peers: []state.Peer{{Slice: first}},
			}
			w.assignments[first] = a
		}},
		{"only its hosts remember it", func(w *world, _ string) {
			clear(w.logs)
			for name, a := range w.assignments {
				a.Run = nil
				w.assignments[name] = a
			}
		}},
		{"only its logs are left", func(w *world, first string) {
			for name := range w.assignments {
				delete(w.hosts, name)
				a := w.assignments[name]
				a.Run = nil
				w.assignments[name] = a
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			desired := files([]schema.Job{at(t, "job.a", from("p", 2))}, pool("p", 2))
			w := newWorld(t, desired)
			w.settle()
			test.change(w, w.job(address(t, "job.a")).Slices[0])
			report := w.rebuild(&desired)
			if j := w.job(address(t, "job.a")); j.Status != schema.JobStopped || len(report.Unknown) != 1 || !strings.Contains(j.Reason, "--replace='job.a'") {
				t.Errorf("job.a is %s: %s, report %+v, want it stopped", j.Status, j.Reason, report)
			}
		})
	}
}

// A reservation that is declared no more is kept while a job runs on it.
func TestRebuildKeepsAPoolInUse(t *testing.T) {
	w := newWorld(t, files([]schema.Job{at(t, "job.a", from("p", 2))}, pool("p", 3)))
	w.settle()
	empty := schema.Desired{}
	w.rebuild(&empty)
	w.mustStay("with the new snapshot", w.doc.Desired)
	if r := w.doc.Resources[address(t, "reservation.p")].Reservation; r == nil || r.Min.Slices != 3 || len(w.doc.Unmanaged) > 0 {
		t.Errorf("reservation %+v, unmanaged %v, want all three slices kept", r, w.doc.Unmanaged)
	}
}
