package web

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func decode[T any](t *testing.T, s *Server, path string) T {
	t.Helper()
	w := ask(s, path, nil)
	var out T
	if w.Code != http.StatusOK {
		t.Fatalf("%s: got status %d, %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

// TestOfARealPlan shows a stack that a plan has looked after from its beginning.
func TestOfARealPlan(t *testing.T) {
	w := newWorld(t, schema.Desired{Jobs: []schema.Job{
		localJob("bad", nil), localJob("good", nil),
		localJob("later", func(j *schema.Job) { j.DependsOn = []schema.Address{{Kind: schema.KindJob, Name: "bad"}} }),
	}})
	s := pageOf(t, w.steps(8), nil)
	jobs := decode[JobList](t, s, "/api/v1/jobs")
	if got, want := jobs.Facets.Status, map[schema.JobStatus]int{schema.JobRunning: 2, schema.JobPending: 1}; got[schema.JobRunning] != 2 || got[schema.JobPending] != 1 {
		t.Fatalf("got statuses %v, want %v", got, want)
	}
	w.ends[schema.Address{Kind: schema.KindJob, Name: "bad"}] = schema.TaskFailed
	s.advance(w.steps(8))

	bad := decode[JobDetail](t, s, "/api/v1/jobs/job.bad")
	if bad.Status != schema.JobFailed || len(bad.Attempts) != 1 || bad.Attempts[0].Outcome != schema.TaskFailed {
		t.Errorf("got %s with attempts %+v, want one failed", bad.Status, bad.Attempts)
	}
	if tasks := bad.Attempts[0].Tasks; len(tasks) != 1 || tasks[0].ExitCode == nil || *tasks[0].ExitCode != 1 || len(tasks[0].Tail) != 1 {
		t.Errorf("got tasks %+v, want one with code 1 and its last line", tasks)
	}
	later := decode[JobDetail](t, s, "/api/v1/jobs/job.later")
	if !later.Blocked || len(later.Pending) != 1 || !strings.Contains(later.Pending[0], "job.bad") {
		t.Errorf("got blocked %v by %q, want it to be by job.bad", later.Blocked, later.Pending)
	}
	overview := decode[Overview](t, s, "/api/v1/overview")
	if overview.Jobs[schema.JobFailed] != 1 || overview.Blocked != 1 || overview.Slices[PhaseReady] == 0 || overview.Version != 2 {
		t.Errorf("got %+v, want one failed, one blocked and slices that are ready", overview)
	}
	if got := namesOf(overview.Attention); got != "job.bad job.later" {
		t.Errorf("needs a look: got %q, want %q", got, "job.bad job.later")
	}
	slices := decode[SliceList](t, s, "/api/v1/slices")
	if len(slices.Zones) != 1 || slices.Zones[0].Phases[PhaseReady] != len(slices.Slices) {
		t.Errorf("got zones %+v of %d slices, want one with all of them ready", slices.Zones, len(slices.Slices))
	}
	events := decode[EventList](t, s, "/api/v1/events?q=job.bad+error")
	if events.Total == 0 || events.Events[0].Level != LevelError || !strings.HasPrefix(events.Events[0].Text, "failed: ") {
		t.Errorf("got events %+v, want the failure first", events.Events)
	}
}

// family is a job that launched two, one of which launched another.
func family() *Snapshot {
	doc := &state.Document{Lineage: "abcdefghijklmnop", Jobs: map[schema.Address]*state.Job{}}
	put := func(name, parent string, status schema.JobStatus) {
		spec := localJob(name, nil)
		j := &state.Job{ID: "id-" + name, Spec: &spec, Status: status, AdmittedAt: testTime.Add(-time.Duration(len(name)) * time.Minute)}
		if parent != "" {
			j.Launch = &state.Launch{Name: name, Parent: "id-" + parent}
			spec.Addr = schema.LaunchedAddress(schema.KindJob, "lab", "", name)
		}
		doc.Jobs[spec.Addr] = j
	}
	put("solo", "", schema.JobSucceeded)
	put("root", "", schema.JobRunning)
	put("child-a", "root", schema.JobRunning)
	put("child-b", "root", schema.JobFailed)
	put("grandchild", "child-b", schema.JobPending)
	return &Snapshot{View: access.View{Doc: doc, At: testTime}, Leads: true}
}

// TestNothingNeedsALook of a stack that is well: what the page reads is a list all the same.
func TestNothingNeedsALook(t *testing.T) {
	w := newWorld(t, schema.Desired{Jobs: []schema.Job{localJob("good", nil)}})
	s := pageOf(t, w.steps(8), nil)
	if got := decode[Overview](t, s, "/api/v1/overview").Attention; got == nil || len(got) > 0 {
		t.Errorf("got attention %v (nil: %v), want an empty list", got, got == nil)
	}
}

func TestJobLists(t *testing.T) {
	s := pageOf(t, family(), nil)
	tests := []struct {
		name, query, want string
		matched           int
	}{
		{"as a tree", "", "job.root >child-a >child-b >>grandchild job.solo", 5},
		{"what is above a match stays", "?q=GRAND", "(job.root) (>child-b) >>grandchild", 1},
		{"status", "?status=failed,pending", "(job.root) >child-b >>grandchild", 2},
		{"status, sorted: no tree", "?status=failed,pending&sort=name", "child-b grandchild", 2},
		{"sorted down", "?sort=name&order=desc", "job.solo job.root grandchild child-b child-a", 5},
		{"by status", "?sort=status", "child-b grandchild job.root child-a job.solo", 5},
		{"by age", "?sort=admitted", "grandchild child-a child-b job.root job.solo", 5},
		{"another namespace", "?namespace=other", "", 0},
		{"namespace", "?namespace=lab&q=solo", "job.solo", 1},
		{"band", "?band=batch", "", 0},
		{"all words", "?q=child+-a&sort=name", "child-a", 1},
		{"by its id", "?q=id-solo", "job.solo", 1},
		{"page", "?offset=1&limit=2", ">child-a >child-b", 5},
		{"behind the end", "?offset=99", "", 5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := decode[JobList](t, s, "/api/v1/jobs"+test.query)
			if namesOf(got.Jobs) != test.want || got.Matched != test.matched || got.Total != 5 {
				t.Errorf("got %q, %d of %d\nwant %q, %d of 5", namesOf(got.Jobs), got.Matched, got.Total, test.want, test.matched)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	s := pageOf(t, family(), nil)
	tests := []struct {
		path string
		code int
		want string
	}{
		{"/api/v1/jobs?sort=colour", http.StatusBadRequest, `sort: "colour" is not one of`},
		{"/api/v1/jobs?offset=-1", http.StatusBadRequest, `offset: want a whole number of at least 0, not "-1"`},
		{"/api/v1/jobs?limit=many", http.StatusBadRequest, `limit: want a whole number`},
		{"/api/v1/jobs/missing", http.StatusNotFound, `there is no job "missing"`},
		{"/api/v1/jobs/missing/logs", http.StatusNotFound, `there is no job "missing"`},
		{"/api/v1/jobs/id-solo/logs?task=x", http.StatusBadRequest, `task: want a whole number`},
		{"/api/v1/jobs/id-solo/logs?tail=0", http.StatusBadRequest, `tail: want a number of bytes between 1 and`},
		{"/api/v1/nothing", http.StatusNotFound, `there is nothing at /api/v1/nothing`},
		{"/metrics", http.StatusNotFound, ``},
		{"/web.go", http.StatusNotFound, ``},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			w := ask(s, test.path, nil)
			if w.Code != test.code || !strings.Contains(w.Body.String(), strings.ReplaceAll(test.want, `"`, `\"`)) {
				t.Errorf("got %d %s\nwant %d and %s", w.Code, w.Body, test.code, test.want)
			}
		})
	}
	r, _ := http.NewRequest(http.MethodPost, "http://localhost/api/v1/jobs", nil)
	if w := ask(s, "/", func(at *http.Request) { *at = *r }); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d, want %d: the page only reads", w.Code, http.StatusMethodNotAllowed)
	}
}

func TestJobDetail(t *testing.T) {
	snap := family()
	for _, j := range snap.Doc.Jobs {
		j.Spec.Environment.Env = map[string]schema.Text{"KEY": schema.Secret("hunter2"), "MODE": schema.Plain("fast")}
		j.Spec.Command = []schema.Text{schema.Plain("train"), schema.Secret("hunter3")}
	}
	s := pageOf(t, snap, nil)
	root := decode[JobDetail](t, s, "/api/v1/jobs/id-root")
	if got := namesOf(root.Below); got != "child-a child-b >grandchild" {
		t.Errorf("below: got %q, want %q", got, "child-a child-b >grandchild")
	}
	if got := decode[JobDetail](t, s, "/api/v1/jobs/id-grandchild").ParentName; got != "child-b" {
		t.Errorf("parent: got %q, want child-b", got)
	}
	if len(root.Env) != 2 || root.Env[1] != (EnvRow{"MODE", "fast"}) {
		t.Errorf("got environment %v, want KEY and MODE=fast", root.Env)
	}
	for _, path := range []string{"/api/v1/jobs/id-root", "/api/v1/jobs", "/api/v1/overview"} {
		if body := ask(s, path, nil).Body.String(); strings.Contains(body, "hunter") {
			t.Errorf("%s tells a secret: %s", path, body)
		}
	}
}

// TestParentsInACircle: a damaged state must not hang the page.
func TestParentsInACircle(t *testing.T) {
	snap := family()
	for _, j := range snap.Doc.Jobs {
		if j.ID == "id-root" {
			j.Launch = &state.Launch{Name: "root", Parent: "id-grandchild"}
		}
	}
	got := decode[JobList](t, pageOf(t, snap, nil), "/api/v1/jobs")
	if got.Total != 5 {
		t.Errorf("got %d jobs, want 5", got.Total)
	}
}

func TestShares(t *testing.T) {
	got := decode[ShareList](t, pageOf(t, makeUp(120, testTime), nil), "/api/v1/shares")
	share, entitled, chips := 0.0, 0.0, 0
	for _, row := range got.Shares {
		share, entitled, chips = share+row.Share, entitled+row.Entitled, chips+row.Chips
	}
	if len(got.Shares) != 4 || chips != got.Chips || share < 0.999 || share > 1.001 || entitled < 0.999 || entitled > 1.001 {
		t.Errorf("got %d namespaces with shares of %v, entitled to %v, %d chips of %d; want 4 and all of it", len(got.Shares), share, entitled, chips, got.Chips)
	}
	if got.Shares[2].Namespace != "pretrain" || got.Shares[2].Entitled != 0.4 || got.Shares[2].Users[0].Name != "ada" {
		t.Errorf("got %+v, want pretrain, entitled to 4 of 10, and ada first", got.Shares[2])
	}
}

func TestReservations(t *testing.T) {
	got := decode[ReservationList](t, pageOf(t, makeUp(24, testTime), nil), "/api/v1/reservations")
	if len(got.Reservations) != 2 {
		t.Fatalf("got %d reservations, want 2", len(got.Reservations))
	}
	pool := got.Reservations[0]
	if pool.Name != "pool" || pool.Allocated != 6 || pool.Pending != 1 || pool.Free != 6 || pool.Max != 12 || len(pool.Reasons) != 1 ||
		!pool.ExpiresAt.Equal(testTime.Add(2*time.Hour)) {
		t.Errorf("got %+v, want 6 allocated and free, 1 pending, of at most 12, until in two hours", pool)
	}
}

func TestPhases(t *testing.T) {
	listed := func(phase schema.SlicePhase) *schema.SliceStatus { return &schema.SliceStatus{Phase: phase} }
	tests := []struct {
		name   string
		slice  state.Slice
		listed *schema.SliceStatus
		want   Phase
	}{
		{"not asked for", state.Slice{}, nil, PhaseWanted},
		{"asked for", state.Slice{PendingSince: testTime}, nil, PhaseCreating},
		{"queued", state.Slice{PendingSince: testTime, Queued: true}, listed(schema.SliceCreating), PhaseQueued},
		{"its cloud is not done, its hosts are", state.Slice{PendingSince: testTime, UpAt: testTime}, listed(schema.SliceCreating), PhaseReady},
		{"its cloud is done, its hosts are not", state.Slice{PendingSince: testTime}, listed(schema.SliceReady), PhaseCreating},
		{"terminating", state.Slice{UpAt: testTime, Terminating: state.Termination{Cause: state.CauseUnused, Text: "nothing declared uses it"}}, listed(schema.SliceReady), PhaseDeleting},
		{"going", state.Slice{UpAt: testTime}, listed(schema.SliceDeleting), PhaseDeleting},
		{"dead", state.Slice{UpAt: testTime, Terminating: state.Termination{Cause: state.CauseDead, Text: "it is dead"}}, listed(schema.SliceDead), PhaseDead},
		{"taken away", state.Slice{UpAt: testTime, Preempted: true}, nil, PhaseDead},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := phaseOf(&test.slice, test.listed); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func BenchmarkJobs10000(b *testing.B) {
	snap := makeUp(10_000, testTime)
	for _, path := range []string{"/api/v1/jobs?q=train&limit=100", "/api/v1/overview"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				s, err := New(Config{Source: newSource(snap), Logs: &memory{}, Loopback: true, Log: nolog()})
				if err != nil {
					b.Fatal(err)
				}
				if w := ask(s, path, nil); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}

// blind is a snapshot in which a provider cannot be seen, and its last list was odd.
func blind() *Snapshot {
	snap := family()
	since := testTime.Add(-3 * time.Minute)
	snap.Unreachable = map[schema.ProviderName]plan.Unreachable{schema.ProviderGCP: {Kind: schema.ErrorPermission, Text: "401 no credentials"}}
	snap.Doc.Conditions = map[schema.ProviderName]state.ProviderCondition{schema.ProviderGCP: {
		Unseen:  &state.Unseen{Since: since, Kind: schema.ErrorPermission, Text: "401 no credentials"},
		Missing: &state.Missing{Since: since, Slices: 4, Of: 5},
		Skipped: []schema.SkippedItem{{Name: "copied", Zone: "us-west4-a", Reason: schema.SkipCopy, Text: "it is a copy of a"}},
	}}
	return snap
}

// The overview says which provider cannot be seen, since when and why.
func TestOverviewOfAProviderThatCannotBeSeen(t *testing.T) {
	snap := blind()
	got := decode[Overview](t, pageOf(t, snap, nil), "/api/v1/overview")
	if got.Unreachable["gcp"] != "401 no credentials" || !reflect.DeepEqual(got.Conditions, snap.Doc.Conditions) {
		t.Errorf("unreachable is %v, conditions are %+v", got.Unreachable, got.Conditions)
	}
	if calm := decode[Overview](t, pageOf(t, family(), nil), "/api/v1/overview"); len(calm.Unreachable)+len(calm.Conditions) > 0 {
		t.Errorf("while all providers answer, unreachable is %v, conditions are %v", calm.Unreachable, calm.Conditions)
	}
}
