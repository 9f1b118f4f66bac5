package incremental

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What was decided about a job that waits stands until something of it or of its slice is seen to
// differ, or the slice is overdue.
func TestWhatWasDecidedStands(t *testing.T) {
	const name = "s"
	now, boot := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), plan.NewHeartbeat(0)
	addr := schema.Address{Kind: schema.KindJob, Name: "j"}
	tests := map[string]func(d *snapshot.Evidence, w *waitingJob){
		"":                     func(*snapshot.Evidence, *waitingJob) {},
		"the job's record":     func(d *snapshot.Evidence, _ *waitingJob) { d.Doc.Jobs[addr] = &state.Job{} },
		"the slice's record":   func(d *snapshot.Evidence, _ *waitingJob) { d.Doc.Slices[name] = &state.Slice{} },
		"a doubt":              func(d *snapshot.Evidence, _ *waitingJob) { d.Doubted[name] = plan.DoubtAbsent },
		"its assignment":       func(d *snapshot.Evidence, _ *waitingJob) { d.Obs.Assignments[name] = plan.Assigned{Object: 2} },
		"how it starts":        func(d *snapshot.Evidence, _ *waitingJob) { d.Obs.Booting[name] = true },
		"reports to be read":   func(d *snapshot.Evidence, _ *waitingJob) { d.Obs.Unread[name] = true },
		"a direct read":        func(d *snapshot.Evidence, _ *waitingJob) { d.ReadDirectly[name] = true },
		"it is listed no more": func(d *snapshot.Evidence, _ *waitingJob) { delete(d.Listed, name) },
		"its status": func(d *snapshot.Evidence, _ *waitingJob) {
			d.Listed[name] = &schema.SliceStatus{Phase: schema.SliceReady}
		},
		"a host more": func(d *snapshot.Evidence, _ *waitingJob) { d.Obs.Hosts[name] = append(d.Obs.Hosts[name], plan.Host{}) },
		"a host's report": func(d *snapshot.Evidence, _ *waitingJob) {
			d.Obs.Hosts[name] = []plan.Host{{HostReport: state.HostReport{Boot: "b"}}}
		},
		"a host has no stream": func(d *snapshot.Evidence, _ *waitingJob) { d.Obs.Hosts[name] = []plan.Host{{Heartbeat: boot}} },
		"a host is silent": func(d *snapshot.Evidence, w *waitingJob) {
			d.Obs.Hosts[name] = []plan.Host{{Heartbeat: boot}}
			w.slices[0].hosts = d.Obs.Hosts[name]
			d.Obs.Monitored = snapshot.HostTimeout
		},
		"its place has failed": func(d *snapshot.Evidence, w *waitingJob) {
			w.slices[0].places[0] = "p"
			d.Doc.ZoneHealth = map[string]state.ZoneHealth{"p": {}}
		},
		"its quota has failed": func(d *snapshot.Evidence, w *waitingJob) {
			w.slices[0].places[1] = "q"
			d.Doc.ZoneHealth = map[string]state.ZoneHealth{"q": {Succeeded: true, Until: now.Add(time.Second)}}
		},
		"it is overdue": func(_ *snapshot.Evidence, w *waitingJob) { w.slices[0].due = now },
	}
	for what, differ := range tests {
		job, record, status, hosts := &state.Job{}, &state.Slice{}, &schema.SliceStatus{}, []plan.Host{{}}
		d := &snapshot.Evidence{
			Draft: &snapshot.Draft{
				Input: snapshot.Input{
					Doc: &state.Document{Jobs: map[schema.Address]*state.Job{addr: job}, Slices: map[string]*state.Slice{name: record}}, Now: now,
					Obs: &plan.Observed{
						Assignments: map[string]plan.Assigned{name: {Object: 1}}, Hosts: map[string][]plan.Host{name: hosts},
						Booting: map[string]bool{}, Unread: map[string]bool{},
					},
				},
				Listed: map[string]*schema.SliceStatus{name: status},
			},
			Doubted: map[string]plan.DoubtKind{}, ReadDirectly: map[string]bool{},
		}
		w := waitingJob{record: job, slices: []waitedSlice{{name: name, record: record, status: status, assigned: 1, hosts: hosts, due: now.Add(time.Second)}}}
		differ(d, &w)
		if got := w.stands(d, addr); got != (what == "") {
			t.Errorf("%q differs: it stands: %t", what, got)
		}
	}
}

// Only jobs that have nothing to do with others wait for their turn.
func TestWhichJobsWaitForTheirTurn(t *testing.T) {
	w := newWorld(t)
	w.turns = 1
	w.planner, w.bootTakes = w.newPlanner(), time.Hour
	first := newJob("first")
	group := schema.Address{Kind: schema.KindJob, Group: "g", Name: "member"}
	desired := configuration(first, newJob("second"), newJob("third"),
		newJob("member", func(j *schema.Job) { j.Addr = group }), newJob("after", after(first.Addr)), newJob("using", using(first.Addr)),
		newJob("pooled", from("pool")), newJob("scheduled", func(j *schema.Job) { j.Schedule = &schema.Schedule{Cron: "* * * * *"} }),
		newJob("in time", func(j *schema.Job) { j.SchedulingTimeout = schema.Duration(time.Hour) }))
	w.accept(withPools(desired, newPool("pool", "", 1)))
	w.run(70 * time.Second)
	var got []string
	for _, i := range slices.Sorted(maps.Keys(w.planner.turns.jobs)) {
		got = append(got, w.planner.desired.Jobs[i].Addr.Name)
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("%v wait for their turn, want %v\n%s", got, want, w.describe())
	}
}

// A job whose command becomes known is decided about in the next plan, out of turn: each step
// compares the plan with that of Diff.
func TestAReworkedJobDoesNotWaitForItsTurn(t *testing.T) {
	w := newWorld(t)
	w.turns = 1
	w.planner, w.bootTakes = w.newPlanner(), time.Hour
	w.accept(configuration(newJob("first"), newJob("second"), newJob("third")))
	w.run(5 * time.Second) // until the slices are made
	w.until(10*time.Second, "left out", func(*plan.Plan) bool { return len(w.planner.turns.passed) == 2 })
	for _, i := range slices.Clone(w.planner.turns.passed) {
		if i == w.planner.turns.next {
			continue
		}
		desired := w.doc.Desired
		desired.Jobs = slices.Clone(desired.Jobs)
		desired.Jobs[i].Command = []schema.Text{schema.Plain("another")}
		if w.doc = w.planner.Refined(w.doc, &desired); w.doc != w.planner.last {
			t.Fatal("the next plan decides about all jobs; the test shows nothing")
		}
		w.step(pace)
		if len(w.planner.turns.passed) == 0 {
			t.Error("no job is left out; the test shows nothing")
		}
		return
	}
	t.Fatal("each job has its turn next")
}
