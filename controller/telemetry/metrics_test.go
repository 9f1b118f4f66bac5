package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// scrape is what a Prometheus would read: series by name and labels.
func scrape(t *testing.T, m *metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			series[name] = value
		} else if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			series[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return series
}

// viewOf is a view of n jobs of every status and band, half of which hold a slice.
func viewOf(n int) *access.View {
	doc := &state.Document{Lineage: "abcdefghijklmnop", Jobs: map[schema.Address]*state.Job{}, Slices: map[string]*state.Slice{}}
	v := &access.View{Doc: doc, Plan: &plan.Plan{}, Wanted: &schema.Desired{}, At: time.Now(), Lease: store.Lease{Epoch: 7}}
	for _, name := range []string{"lab", "idle"} {
		v.Wanted.Namespaces = append(v.Wanted.Namespaces, schema.Namespace{Addr: schema.Address{Kind: schema.KindNamespace, Name: name}})
	}
	for i := range n {
		spec := schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: "train", Key: schema.IntKey(i)}, Namespace: "lab", User: fmt.Sprintf("user%d", i),
			Band: []schema.Band{schema.BandProduction, "", schema.BandBatch}[i%3],
		}
		if i%2 == 1 {
			spec.Namespace = fmt.Sprintf("made-up-%d", i)
		}
		j := &state.Job{ID: fmt.Sprint(i), Spec: &spec, Status: schema.JobPending}
		doc.Jobs[spec.Addr] = j
		if i%2 == 1 {
			v.Plan.Pending = append(v.Plan.Pending, plan.Pending{Addr: spec.Addr, Kind: plan.WaitCapacity, Reasons: []string{"us-a: stockout: none left"}})
			continue
		}
		name := fmt.Sprintf("slice-%d", i)
		j.Status, j.Slices, j.Attempt = schema.JobRunning, []string{name}, 1
		j.Attempts = []state.Attempt{{Number: 1, Tasks: []state.Task{{State: schema.TaskRunning}, {State: schema.TaskBuilding}}}}
		doc.Slices[name] = &state.Slice{Spec: schema.SliceSpec{Name: name, Provider: schema.ProviderGCP, Zone: "us-a", TPU: "v5litepod-8", Hosts: 2}, UpAt: time.Now()}
	}
	return v
}

func TestMetricsOfTheStack(t *testing.T) {
	l := access.NewSerializer()
	m := newMetrics(web.Stack{State: l}, "1.2.3")
	if got := scrape(t, m); got["fray_leading"] != "0" || got[`fray_build_info{version="1.2.3"}`] != "1" || got[`fray_jobs{band="batch",status="running"}`] != "" {
		t.Errorf("before the first step: got leading %q, build %q", got["fray_leading"], got[`fray_build_info{version="1.2.3"}`])
	}
	l.Publish(viewOf(12))
	got := scrape(t, m)
	for series, want := range map[string]string{
		"fray_leading": "1", "fray_lease_epoch": "7", "fray_paused": "0",
		`fray_jobs{band="production",status="running"}`: "2", `fray_jobs{band="interactive",status="pending"}`: "2",
		`fray_tasks{state="running"}`: "6", `fray_tasks{state="building"}`: "6",
		`fray_slices{phase="ready",provider="gcp",type="v5litepod-8",zone="us-a"}`: "6",
		`fray_chips{state="held"}`:                        "48",
		`fray_pending_jobs{reason="capacity"}`:            "6",
		`fray_pending_jobs{reason="quota"}`:               "0",
		`fray_namespace_share_ratio{namespace="lab"}`:     "1",
		`fray_namespace_chips{namespace="lab"}`:           "48",
		`fray_namespace_entitled_ratio{namespace="idle"}`: "0",
		`fray_attempts_ended_total{outcome="failed"}`:     "0",
	} {
		if got[series] != want {
			t.Errorf("%s: got %q, want %q", series, got[series], want)
		}
	}
	l.Stop()
	if got := scrape(t, m); got["fray_leading"] != "0" || got["fray_lease_epoch"] != "" {
		t.Errorf("after leading: got leading %q, epoch %q; want 0 and none: how the stack stands is the leader's to say", got["fray_leading"], got["fray_lease_epoch"])
	}
}

// TestMetricsAreBounded: ten times the jobs, users, slices and made-up namespaces
// are as many series.
// Which providers are not seen whole is shown by kind and reason, and that they are again.
func TestMetricsOfProvidersThatAreNotSeen(t *testing.T) {
	l := access.NewSerializer()
	m := newMetrics(web.Stack{State: l}, "1.2.3")
	v := viewOf(3)
	v.Inventories = map[schema.ProviderName]schema.Inventory{schema.ProviderGCP: {}, schema.ProviderLocal: {}}
	want := func(when string, series map[string]string) {
		t.Helper()
		got := scrape(t, m)
		for name, value := range series {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", when, name, got[name], value)
			}
		}
	}
	l.Publish(v)
	want("all is well", map[string]string{
		`fray_provider_unseen{kind="",provider="gcp"}`: "0", `fray_provider_unseen{kind="",provider="local"}`: "0",
		`fray_provider_missing_slices{provider="gcp"}`: "0",
	})
	blind := *v
	blind.Doc = v.Doc.Clone()
	blind.Inventories = map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}}
	blind.Doc.Conditions = map[schema.ProviderName]state.ProviderCondition{schema.ProviderGCP: {
		Unseen:  &state.Unseen{Since: time.Now(), Kind: schema.ErrorPermission, Text: "401"},
		Missing: &state.Missing{Since: time.Now(), Slices: 4, Of: 5},
		Skipped: []schema.SkippedItem{{Name: "a", Reason: schema.SkipCopy}, {Name: "b", Reason: schema.SkipCopy}, {Name: "c", Reason: schema.SkipUnreadable}},
	}}
	l.Publish(&blind)
	want("one is blind", map[string]string{
		`fray_provider_unseen{kind="permission",provider="gcp"}`: "1", `fray_provider_unseen{kind="",provider="gcp"}`: "",
		`fray_provider_unseen{kind="",provider="local"}`: "0", `fray_provider_missing_slices{provider="gcp"}`: "4",
		`fray_provider_skipped_items{provider="gcp",reason="copy"}`: "2", `fray_provider_skipped_items{provider="gcp",reason="unreadable"}`: "1",
	})
	l.Publish(v)
	want("it is seen again", map[string]string{
		`fray_provider_unseen{kind="",provider="gcp"}`: "0", `fray_provider_unseen{kind="permission",provider="gcp"}`: "",
		`fray_provider_missing_slices{provider="gcp"}`: "0", `fray_provider_skipped_items{provider="gcp",reason="copy"}`: "",
	})
}

func TestMetricsAreBounded(t *testing.T) {
	series := func(n int) []string {
		l := access.NewSerializer()
		m := newMetrics(web.Stack{State: l}, "")
		l.Publish(viewOf(n))
		names := slices.Sorted(maps.Keys(scrape(t, m)))
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "fray_") })
	}
	few, many := series(24), series(2400)
	if !slices.Equal(few, many) || len(few) < 20 {
		t.Errorf("got %d series of 24 jobs, %d of 2400\n%s\n%s", len(few), len(many), few, many)
	}
}

func TestAttemptsAreCountedOnce(t *testing.T) {
	l := access.NewSerializer()
	m := newMetrics(web.Stack{State: l}, "")
	view := viewOf(2)
	addr := schema.Address{Kind: schema.KindJob, Name: "train", Key: schema.IntKey(0)}
	outcomes := func(all ...schema.TaskState) *access.View {
		next := *view
		next.Doc = view.Doc.Clone()
		j := *view.Doc.Jobs[addr]
		j.Attempts, j.Attempt = nil, len(all)
		for i, outcome := range all {
			j.Attempts = append(j.Attempts, state.Attempt{Number: i + 1, Outcome: outcome})
		}
		next.Doc.Jobs[addr] = &j
		return &next
	}
	steps := []struct {
		view              *access.View
		preempted, failed string
	}{
		{outcomes(schema.TaskFailed, ""), "0", "0"}, // what there was before does not count
		{outcomes(schema.TaskFailed, schema.TaskPreempted, ""), "1", "0"},
		{outcomes(schema.TaskFailed, schema.TaskPreempted, schema.TaskFailed, schema.TaskPreempted), "2", "1"},
		{outcomes(schema.TaskFailed, schema.TaskPreempted, schema.TaskFailed, schema.TaskPreempted), "2", "1"},
	}
	for i, step := range steps {
		l.Publish(step.view)
		got := scrape(t, m)
		preempted, failed := got[`fray_attempts_ended_total{outcome="preempted"}`], got[`fray_attempts_ended_total{outcome="failed"}`]
		if preempted != step.preempted || failed != step.failed {
			t.Errorf("step %d: got %s preempted, %s failed; want %s and %s", i, preempted, failed, step.preempted, step.failed)
		}
	}
}

func TestMetricsOfTheLoop(t *testing.T) {
	m := newMetrics(web.Stack{State: access.NewSerializer()}, "")
	m.stepped(20*time.Millisecond, nil)
	m.stepped(time.Second, errors.New("the store is away"))
	m.looked(apply.Timing{Observe: 10 * time.Millisecond, Plan: time.Millisecond, Differing: 2})
	m.acted(plan.Action{Verb: plan.CreateSlice}, nil)
	m.acted(plan.Action{Verb: plan.CreateSlice}, fmt.Errorf("x: %w", &providers.Error{Kind: schema.ErrorCapacity, Err: errors.New("none left")}))
	m.acted(plan.Action{Verb: plan.Assign}, fmt.Errorf("write: %w", store.ErrConflict))
	m.acted(plan.Action{Verb: plan.Assign}, errors.New("no route to host"))
	m.asked(schema.ProviderGCP, "create", time.Second, &providers.Error{Kind: schema.ErrorQuota, Err: errors.New("used up")})
	watching := m.calling("/fray.cluster.v1.Metadata/Watch")
	m.calling("/fray.cluster.v1.Cluster/Poll")(status.Error(codes.NotFound, "no such job"))
	got := scrape(t, m)
	for series, want := range map[string]string{
		`fray_steps_total{outcome="ok"}`: "1", `fray_steps_total{outcome="error"}`: "1",
		`fray_step_duration_seconds_bucket{le="0.025"}`: "1", "fray_step_duration_seconds_count": "1",
		"fray_look_duration_seconds_count": "1", "fray_plan_differences_total": "2", "fray_save_duration_seconds_count": "0",
		`fray_actions_total{outcome="ok",verb="create_slice"}`: "1", `fray_actions_total{outcome="capacity",verb="create_slice"}`: "1",
		`fray_actions_total{outcome="conflict",verb="assign"}`: "1", `fray_actions_total{outcome="error",verb="assign"}`: "1",
		`fray_provider_calls_total{method="create",outcome="quota",provider="gcp"}`:    "1",
		`fray_provider_call_duration_seconds_count{method="create",provider="gcp"}`:    "1",
		`fray_api_calls_total{code="NotFound",method="/fray.cluster.v1.Cluster/Poll"}`: "1",
		`fray_api_calls_in_flight{method="/fray.cluster.v1.Metadata/Watch"}`:           "1",
		`fray_api_calls_in_flight{method="/fray.cluster.v1.Cluster/Poll"}`:             "0",
	} {
		if got[series] != want {
			t.Errorf("%s: got %q, want %q", series, got[series], want)
		}
	}
	watching(nil)
	if got := scrape(t, m)[`fray_api_calls_in_flight{method="/fray.cluster.v1.Metadata/Watch"}`]; got != "0" {
		t.Errorf("after the watch: got %s in flight", got)
	}
}

// TestMetricNames are by Prometheus' own conventions.
func TestMetricNames(t *testing.T) {
	l := access.NewSerializer()
	m := newMetrics(web.Stack{State: l}, "")
	m.acted(plan.Action{Verb: plan.Assign}, nil)
	m.asked(schema.ProviderGCP, "create", time.Second, nil)
	m.calling("/x")(nil)
	m.stepped(time.Second, nil)
	l.Publish(viewOf(6))
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("got %v %v", problems, err)
	}
}

// plainProvider can do what every provider can; fullProvider more.
type plainProvider struct{ err error }

func (p *plainProvider) Inventory(context.Context, string) (schema.Inventory, error) {
	return schema.Inventory{Foreign: 3}, p.err
}
func (p *plainProvider) Get(context.Context, schema.SliceSpec) (schema.SliceStatus, bool, error) {
	return schema.SliceStatus{}, false, p.err
}
func (p *plainProvider) Create(context.Context, schema.SliceSpec) error { return p.err }
func (p *plainProvider) Delete(context.Context, schema.SliceSpec) error { return p.err }

type fullProvider struct {
	plainProvider
	updated int
}

func (p *fullProvider) Update(context.Context, schema.SliceSpec) error { p.updated++; return p.err }
func (p *fullProvider) Pace() time.Duration                            { return time.Minute }

func TestInstrumentedProviders(t *testing.T) {
	m := newMetrics(web.Stack{State: access.NewSerializer()}, "")
	trace, err := newTracer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	plainOne := instrument(schema.ProviderLocal, &plainProvider{err: errors.New("down")}, m, trace)
	if _, ok := providers.AsUpdater(plainOne); ok {
		t.Error("one that cannot update slices says that it can")
	}
	inner := &fullProvider{}
	full := instrument(schema.ProviderGCP, inner, m, trace)
	updater, ok := providers.AsUpdater(full)
	if !ok || updater.Update(t.Context(), schema.SliceSpec{}) != nil || inner.updated != 1 {
		t.Errorf("an update reached it %d times, want once", inner.updated)
	}
	if pacer, ok := providers.AsPacer(full); !ok || pacer.Pace() != time.Minute {
		t.Error("its pace is not found")
	}
	if inv, err := full.Inventory(t.Context(), "s"); err != nil || inv.Foreign != 3 {
		t.Errorf("got inventory %+v, %v", inv, err)
	}
	if err := errors.Join(full.Create(t.Context(), schema.SliceSpec{}), full.Delete(t.Context(), schema.SliceSpec{})); err != nil {
		t.Error(err)
	}
	if plainOne.Create(t.Context(), schema.SliceSpec{}) == nil {
		t.Error("an error was lost")
	}
	got := scrape(t, m)
	for _, series := range []string{
		`{method="update",outcome="ok",provider="gcp"}`, `{method="inventory",outcome="ok",provider="gcp"}`, `{method="create",outcome="ok",provider="gcp"}`,
		`{method="delete",outcome="ok",provider="gcp"}`, `{method="create",outcome="error",provider="local"}`,
	} {
		if got["fray_provider_calls_total"+series] != "1" {
			t.Errorf("%s: got %q, want 1", series, got["fray_provider_calls_total"+series])
		}
	}
}
