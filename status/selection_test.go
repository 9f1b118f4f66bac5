package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/status/selection"
	"github.com/fray-ml/fray/terminal"
)

// crowd is a stack of n jobs with a slice of two hosts each: every tenth waits, every
// hundredth has failed; by namespace, zone and user.
func crowd(n int) *View {
	jobs := map[string]*state.Job{}
	var pending []plan.Pending
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		j := up()
		j.AdmittedAt = noon.Add(-time.Hour)
		switch {
		case i%100 == 0:
			j.Status, j.Reason = schema.JobFailed, "exit status 3"
		case i%10 == 0:
			j.Status = schema.JobPending
			pending = append(pending, plan.Pending{Addr: schema.Address{Kind: schema.KindJob, Name: name}, Reasons: []string{"no capacity"}, Kind: plan.WaitCapacity})
		default:
			j.Slices = []string{"s-" + name}
			j.Attempt, j.Attempts = 1, []state.Attempt{{Number: 1, StartedAt: noon.Add(-time.Minute), Slices: j.Slices, Tasks: []state.Task{
				{Slice: "s-" + name, State: schema.TaskRunning}, {Slice: "s-" + name, Host: 1, State: schema.TaskRunning},
			}}}
		}
		jobs[name] = j
	}
	v := viewOf(jobs, pending...)
	i := 0
	for _, addr := range stack.SortedJobs(v.Doc) {
		j := v.Doc.Jobs[addr]
		j.Spec.Namespace, j.Spec.User = []string{"lab", "prod", "batch"}[i%3], fmt.Sprint("user", i%7)
		for _, name := range j.Slices {
			v.Doc.Slices[name] = &state.Slice{UpAt: noon, Spec: schema.SliceSpec{
				Name: name, Owner: addr, Provider: schema.ProviderGCP, Zone: []string{"us-west4-a", "europe-west4-b"}[i%2], TPU: "v5litepod-8", Hosts: 2,
			}}
		}
		i++
	}
	return v
}

func asked(t *testing.T, v *View, f selection.Flags) *View {
	t.Helper()
	s, err := selection.Of(&f)
	if err != nil {
		t.Fatal(err)
	}
	c := *v
	c.Select = s
	c.found = selection.Match(c.Doc, c.plan.Pending, s.Terms)
	return &c
}

func textOf(t *testing.T, v *View) string {
	t.Helper()
	var out bytes.Buffer
	if err := v.Text(&terminal.Terminal{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFilter(t *testing.T) {
	v := crowd(300)
	for _, test := range []struct {
		filter []string
		want   int
	}{
		{nil, 300},
		{[]string{"state=failed"}, 3},
		{[]string{"state=failed|pending"}, 30},
		{[]string{"state!=running"}, 30},
		{[]string{"state=running", "zone=us-west4-a"}, 120}, // the tenths are even
		{[]string{"state=running,zone=us-west4-a,namespace=lab"}, 40},
		{[]string{"zone="}, 30}, // has no slice
		{[]string{"type~V5LITE"}, 270},
		{[]string{"waits=capacity"}, 27},
		{[]string{"reason~exit status"}, 3},
		{[]string{"name~n0001"}, 10},
		{[]string{"name=job.n00011"}, 1},
		{[]string{"user=user1", "user=user2"}, 0},
		{[]string{"band=interactive", "provider=gcp"}, 270},
	} {
		if got := len(shownJobs(asked(t, v, selection.Flags{Filter: test.filter}))); got != test.want {
			t.Errorf("%q leaves %d jobs, want %d", test.filter, got, test.want)
		}
	}
}

func TestFiltersThatAreNone(t *testing.T) {
	for _, test := range []struct {
		flags selection.Flags
		want  string
	}{
		{selection.Flags{Filter: []string{"failed"}}, `--filter: "failed" compares nothing: want FIELD=VALUE`},
		{selection.Flags{Filter: []string{"colour=red"}}, `--filter: "colour" is no field of a job: want one of name, namespace, state, zone`},
		{selection.Flags{Filter: []string{"state=broken"}}, `--filter: "broken" is no state: want one of failed, pending, running`},
		{selection.Flags{Filter: []string{""}}, `--filter: "" has no condition`},
		{selection.Flags{Filter: []string{"state!running"}}, `compares nothing`},
		{selection.Flags{GroupBy: []string{"name"}}, `--group-by: "name" is nothing to group by: want some of namespace, state`},
		{selection.Flags{Limit: -1, HasLimit: true}, "--limit: want a number of rows"},
		{selection.Flags{Page: -2}, "--page: want a page from 1 on"},
		{selection.Flags{Page: 2, HasLimit: true}, "--page: want a page from 1 on, of --limit rows each"},
	} {
		if _, err := selection.Of(&test.flags); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.flags, err, test.want)
		}
	}
}

// A stack of up to 200 jobs has a line for each of them, one of more has sums, and the jobs that need
// attention; who asks for rows gets rows.
func TestManyJobsFold(t *testing.T) {
	few := textOf(t, asked(t, crowd(200), selection.Flags{}))
	if strings.Count(few, "\njob.n") != 200 || strings.Contains(few, "NAMESPACE") {
		t.Errorf("of 200 jobs:\n%s", few)
	}
	text := textOf(t, asked(t, crowd(3000), selection.Flags{}))
	for _, want := range []string{
		"2700 running, 270 pending, 30 failed | 2700 slices up, 21600 chips",
		"NAMESPACE  JOBS  RUNNING  PENDING  FAILED  ENDED  TASKS      SLICES  HOSTS  CHIPS  WAITS FOR\n",
		"lab        1000  900      90       10      -      1800/1800  900     1800   7200   90 capacity\n",
		"us-west4-a      1200  1200",
		"Need attention:\nADDRESS",
		"280 more jobs that failed or wait.",
		"3000 jobs are folded: fray status --page 1 lists them in pages of 200, --limit 0 all of them",
		"No controller watches this stack",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\njob.n"); n != urgentRows || strings.Count(text, "\n") > 70 {
		t.Errorf("got %d jobs and %d lines:\n%s", n, strings.Count(text, "\n"), text)
	}
	if n := strings.Count(textOf(t, asked(t, crowd(3000), selection.Flags{HasLimit: true})), "\njob.n"); n != 3000 {
		t.Errorf("with --limit 0: got %d jobs", n)
	}
}

// Pages have every job once.
func TestPages(t *testing.T) {
	v := crowd(450)
	seen := map[string]int{}
	for page := 1; page <= 5; page++ {
		text := textOf(t, asked(t, v, selection.Flags{Page: page, Limit: 100, HasLimit: true}))
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "job.n") {
				seen[strings.Fields(line)[0]]++
			}
		}
		more := fmt.Sprintf("%d more jobs: --page %d shows the next, --limit 0 all.", 450-100*page, page+1)
		if page < 5 && !strings.Contains(text, more) || page == 5 && strings.Contains(text, "more jobs") {
			t.Errorf("page %d:\n%s", page, text)
		}
	}
	if len(seen) != 450 {
		t.Errorf("got %d jobs, want 450", len(seen))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	if text := textOf(t, asked(t, v, selection.Flags{Page: 9})); !strings.Contains(text, "Page 9 has no jobs: there are 450, 200 on a page.") {
		t.Errorf("got\n%s", text)
	}
	if text := textOf(t, asked(t, v, selection.Flags{Filter: []string{"namespace=none"}})); !strings.Contains(text, "No job matches, of 450.") {
		t.Errorf("got\n%s", text)
	}
}

// Sums by groups add up to the jobs, slices and hosts that there are.
func TestGroupsAddUp(t *testing.T) {
	v := crowd(300)
	v.Doc.Slices["idle"] = &state.Slice{UpAt: noon, Spec: schema.SliceSpec{Name: "idle", Zone: "us-west4-a", Hosts: 4, Provider: schema.ProviderGCP}}
	for _, by := range selection.GroupFields() {
		jobs, hosts, tasks := 0, 0, 0
		for _, g := range groupsOf(v, []selection.Field{by}) {
			jobs, hosts, tasks = jobs+g.Jobs, hosts+g.Hosts, tasks+g.Tasks
		}
		if jobs != 300 || hosts != 270*2+4 || tasks != 540 {
			t.Errorf("by %s: got %d jobs, %d hosts, %d tasks", by, jobs, hosts, tasks)
		}
	}
	for _, j := range v.Doc.Jobs { // one that spans both zones counts in each
		if len(j.Slices) > 0 && v.Doc.Slices[j.Slices[0]].Spec.Zone == "us-west4-a" {
			v.Doc.Slices["other"] = &state.Slice{Spec: schema.SliceSpec{Name: "other", Zone: "europe-west4-b", Hosts: 2}}
			j.Slices = append(j.Slices, "other")
			break
		}
	}
	jobs, hosts := 0, 0
	for _, g := range groupsOf(v, []selection.Field{selection.FieldZone}) {
		jobs, hosts = jobs+g.Jobs, hosts+g.Hosts
	}
	if jobs != 301 || hosts != 270*2+4+2 {
		t.Errorf("got %d jobs, %d hosts", jobs, hosts)
	}
}

func TestSelectionInJSON(t *testing.T) {
	v := crowd(300)
	var got struct {
		Jobs    []struct{ Address string }
		Slices  []struct{ Owner string }
		Pending []plan.Pending
		Page    *pageJSON
		GroupBy []string `json:"group_by"`
		Groups  []selection.Group
	}
	read := func(f selection.Flags) {
		t.Helper()
		got.Pending, got.Page, got.Groups, got.GroupBy = nil, nil, nil, nil
		data, err := json.Marshal(asked(t, v, f).Document())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
	}
	read(selection.Flags{})
	if len(got.Jobs) != 300 || len(got.Slices) != 270 || len(got.Pending) != 27 || got.Page != nil {
		t.Errorf("without flags: got %d jobs, %d slices, %d pending, %v", len(got.Jobs), len(got.Slices), len(got.Pending), got.Page)
	}
	read(selection.Flags{Filter: []string{"state=running"}, Page: 3, Limit: 100, HasLimit: true})
	if len(got.Jobs) != 70 || len(got.Slices) != 70 || len(got.Pending) != 0 || *got.Page != (pageJSON{Page: 3, Limit: 100, Total: 270}) {
		t.Errorf("a page: got %d jobs, %d slices, %d pending, %+v", len(got.Jobs), len(got.Slices), len(got.Pending), got.Page)
	}
	read(selection.Flags{GroupBy: []string{"namespace", "zone"}})
	if len(got.Jobs) != 0 || len(got.Groups) != 9 || !slices.Equal(got.GroupBy, []string{"namespace", "zone"}) {
		t.Errorf("groups: got %d jobs, %d groups by %q", len(got.Jobs), len(got.Groups), got.GroupBy)
	}
}

// What a job's author chose cannot do anything to a terminal.
func TestGroupsAreInert(t *testing.T) {
	v := crowd(300)
	for _, j := range v.Doc.Jobs {
		j.Spec.User = "\x1b]0;owned\a\nroot"
	}
	if text := textOf(t, asked(t, v, selection.Flags{GroupBy: []string{"user"}})); strings.ContainsAny(text, "\x1b\a") || strings.Contains(text, "\nroot") {
		t.Errorf("got %q", text)
	}
}

// On the screen many jobs have groups. Enter shows what is in one, Esc everything, "o" other groups.
func TestGroupsOnTheScreen(t *testing.T) {
	v := asked(t, crowd(300), selection.Flags{})
	s := shows(newBoard(v), 150, 50)
	if got := s.count(paneGroups); got != 3 {
		t.Fatalf("got %d groups", got)
	}
	pressed(s, "tab", "enter")
	if got := s.count(paneJobs); got != 100 || s.focus != paneJobs || !strings.Contains(s.draw(), "only namespace=batch; Esc shows all") {
		t.Errorf("got %d jobs:\n%s", got, s.draw())
	}
	s.Update(s.observeNow())
	if got := s.count(paneJobs); got != 100 {
		t.Errorf("after another observation: got %d jobs", got)
	}
	pressed(s, "esc")
	if got := s.count(paneJobs); got != 300 {
		t.Errorf("after Esc: got %d jobs", got)
	}
	pressed(s, "o", "o")
	if got := s.count(paneGroups); got != 3 || !strings.Contains(s.draw(), "STATE") {
		t.Errorf("by state: got %d groups:\n%s", got, s.draw())
	}
	if s := shows(newBoard(asked(t, crowd(30), selection.Flags{})), 100, 40); s.count(paneGroups) != 0 {
		t.Error("few jobs have groups")
	}
}
