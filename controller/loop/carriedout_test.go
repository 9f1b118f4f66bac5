package loop

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What became of an accepted commit is known once all that it changes runs, is done or is gone, or as soon as a job of it has failed.
func TestVerdictOfWhatWasAccepted(t *testing.T) {
	a, b := schema.Address{Kind: schema.KindJob, Name: "a"}, schema.Address{Kind: schema.KindJob, Name: "b"}
	job := func(addr schema.Address, status schema.JobStatus, change func(*state.Job)) *state.Job {
		j := &state.Job{Status: status, Spec: &schema.Job{Addr: addr}}
		if change != nil {
			change(j)
		}
		return j
	}
	checked := func(j *state.Job) { j.Spec.HealthCheck = &schema.Health{} }
	ready := func(j *state.Job) { checked(j); j.Ready = true }
	failed := func(j *state.Job) { j.Reason = "exit status 1" }
	for name, c := range map[string]struct {
		jobs []*state.Job
		last plan.Plan
		want string
	}{
		"one is pending":              {[]*state.Job{job(a, schema.JobPending, nil), job(b, schema.JobRunning, nil)}, plan.Plan{}, "accepted revision 7 is carried out"},
		"all run":                     {[]*state.Job{job(a, schema.JobRunning, nil), job(b, schema.JobSucceeded, nil)}, plan.Plan{}, "completed revision 7 is carried out"},
		"one waits for its schedule":  {[]*state.Job{job(a, schema.JobScheduled, nil), job(b, schema.JobStopped, nil)}, plan.Plan{}, "completed revision 7 is carried out"},
		"one is not ready":            {[]*state.Job{job(a, schema.JobRunning, checked)}, plan.Plan{}, "accepted revision 7 is carried out"},
		"it is ready":                 {[]*state.Job{job(a, schema.JobRunning, ready)}, plan.Plan{}, "completed revision 7 is carried out"},
		"one is replaced yet":         {[]*state.Job{job(a, schema.JobRunning, nil)}, plan.Plan{Changes: []plan.Change{{Addr: a, Verb: plan.VerbReplace}}}, "accepted revision 7 is carried out"},
		"one is deleted yet":          {nil, plan.Plan{Changes: []plan.Change{{Addr: b, Verb: plan.VerbDelete}}}, "accepted revision 7 is carried out"},
		"a reservation waits":         {nil, plan.Plan{Pending: []plan.Pending{{Addr: a}}}, "accepted revision 7 is carried out"},
		"all are gone":                {nil, plan.Plan{Changes: []plan.Change{{Addr: b, Verb: plan.VerbNone}}}, "completed revision 7 is carried out"},
		"one has failed":              {[]*state.Job{job(a, schema.JobPending, nil), job(b, schema.JobFailed, failed)}, plan.Plan{}, "failed revision 7: job.b failed: exit status 1"},
		"two have failed":             {[]*state.Job{job(a, schema.JobFailed, failed), job(b, schema.JobFailed, failed)}, plan.Plan{}, "failed revision 7: job.a failed: exit status 1 (and 1 more)"},
		"one that failed begins anew": {[]*state.Job{job(a, schema.JobFailed, failed)}, plan.Plan{Changes: []plan.Change{{Addr: a, Verb: plan.VerbRestart}}}, "accepted revision 7 is carried out"},
	} {
		doc := &state.Document{Jobs: map[schema.Address]*state.Job{}}
		for _, j := range c.jobs {
			doc.Jobs[j.Spec.Addr] = j
		}
		u := &underway{revision: 7, watched: []schema.Address{a, b}}
		if v, text := u.verdict(&c.last, doc); string(v)+" "+text != c.want {
			t.Errorf("%s: got %s %s, want %s", name, v, text, c.want)
		}
	}
}

// A commit is judged once as completed; one whose place is taken before is judged as superseded.
func TestAcceptedProposalsAreJudgedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		var judged []string
		propose := func(name string, desired schema.Desired) {
			t.Helper()
			p := &Proposal{
				Name: name,
				Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
					return apply.Accept(doc, apply.Request{Desired: desired}), nil
				},
				Judged: func(v Verdict, _ string) { judged = append(judged, name+" "+string(v)) },
			}
			l.cfg.Proposal = func() *Proposal { return p }
			if err := l.followFiles(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		step := func() {
			t.Helper()
			wait, err := l.step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
		}
		propose("one", desiring("a")) // no host is ever there for it
		step()
		step()
		next := desiring("a")
		next.Namespaces = []schema.Namespace{{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}}}
		propose("two", next)
		for range 3 {
			step()
		}
		want := []string{"one accepted", "two accepted", "one superseded", "two completed"}
		if !slices.Equal(judged, want) {
			t.Errorf("judged %q, want %q", judged, want)
		}
	})
}
