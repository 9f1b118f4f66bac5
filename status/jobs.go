package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
)

// jobTree are the jobs that are shown, launched ones under those that launched them.
type jobTree struct {
	v        *View
	children map[string][]schema.Address // by the parent's id
	urgency  map[schema.Address]jobUrgency
	rows     []row
}

// jobUrgency is how much a job needs a user's attention, the most first.
type jobUrgency int

// The urgencies.
const (
	jobBroken  jobUrgency = iota // it failed, or waits for what has
	jobStuck                     // it waits for what is not underway
	jobComing                    // it is about to run, or not healthy yet
	jobGoing                     // it runs
	jobHasDone                   // it has ended as it should
)

func (v *View) jobPane() pane {
	t := jobTree{v: v, children: map[string][]schema.Address{}, urgency: map[schema.Address]jobUrgency{}}
	addrs := stack.SortedJobs(v.Doc)
	ids := map[string]bool{}
	for _, addr := range addrs {
		if v.shown(addr) {
			ids[v.Doc.Jobs[addr].ID] = true
		}
	}
	waiting := v.waiting()
	var roots []schema.Address
	for _, addr := range addrs {
		if !v.shown(addr) {
			continue
		}
		j := v.Doc.Jobs[addr]
		u, waits := waiting[addr]
		t.urgency[addr] = urgencyOf(j)
		if waits {
			t.urgency[addr] = min(t.urgency[addr], u)
		}
		if l := j.Launch; l != nil && l.Parent != j.ID && ids[l.Parent] {
			t.children[l.Parent] = append(t.children[l.Parent], addr)
		} else {
			roots = append(roots, addr)
		}
	}
	for _, addr := range roots {
		t.raise(addr)
	}
	t.add(roots, 0)
	return pane{name: "Jobs", rows: t.rows, columns: []column{
		{"ADDRESS", 46}, {"STATUS", 9}, {"TASKS", 7}, {"ATTEMPT", 7}, {"FOR", 8}, {"NOTE", 0},
	}}
}

// waiting says of the jobs that wait for more than what is being done already
// whether that is for something which has ended.
func (v *View) waiting() map[schema.Address]jobUrgency {
	out := map[schema.Address]jobUrgency{}
	for i := range v.plan.Pending {
		switch p := &v.plan.Pending[i]; {
		case p.Blocked:
			out[p.Addr] = jobBroken
		case !p.Underway:
			out[p.Addr] = jobStuck
		}
	}
	return out
}

func urgencyOf(j *state.Job) jobUrgency {
	switch j.Status {
	case schema.JobFailed:
		return jobBroken
	case schema.JobPending:
		return jobComing
	case schema.JobRunning:
		if !j.Ready {
			return jobComing
		}
		return jobGoing
	case schema.JobSucceeded, schema.JobStopped, schema.JobScheduled:
	}
	return jobHasDone
}

// raise gives a job the urgency of the most urgent one below it, and returns it.
func (t *jobTree) raise(addr schema.Address) jobUrgency {
	u := t.urgency[addr]
	for _, child := range t.children[t.v.Doc.Jobs[addr].ID] {
		u = min(u, t.raise(child))
	}
	t.urgency[addr] = u
	return u
}

// add appends the rows of jobs and of those below them.
func (t *jobTree) add(addrs []schema.Address, depth int) {
	slices.SortStableFunc(addrs, func(a, b schema.Address) int { return cmp.Compare(t.urgency[a], t.urgency[b]) })
	for _, addr := range addrs {
		j := t.v.Doc.Jobs[addr]
		t.rows = append(t.rows, row{mood: jobMood(j), job: addr, cells: func() []string {
			v := t.v
			return []string{strings.Repeat("  ", depth) + addr.String(), string(j.Status), tasksOf(j), fmt.Sprint(j.Attempt), v.forHowLong(j), v.note(addr, j)}
		}})
		t.add(t.children[j.ID], depth+1)
	}
}

func jobMood(j *state.Job) mood {
	switch j.Status {
	case schema.JobFailed:
		return moodBad
	case schema.JobPending:
		return moodWaiting
	case schema.JobRunning:
		if !j.Ready {
			return moodWaiting
		}
		return moodPlain
	case schema.JobSucceeded, schema.JobStopped, schema.JobScheduled:
	}
	return moodQuiet
}

// forHowLong is how long the last attempt has been going, or took; of a job that
// never had one, how long it has been waiting.
func (v *View) forHowLong(j *state.Job) string {
	last := j.Last()
	if last == nil {
		return v.ago(j.AdmittedAt)
	}
	return coarseAge(v.endOf(last).Sub(last.StartedAt))
}
