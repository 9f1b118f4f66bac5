package actors

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// An actor's output is that of its task; of a task with several it is the lines with the
// name of its object.
func TestOutputs(t *testing.T) {
	job := func(id, names string) *state.Job {
		return &state.Job{ID: id, Spec: &schema.Job{Environment: schema.Environment{Env: map[string]schema.Text{"FRAY_ACTOR_NAMES": schema.Plain(names)}}}}
	}
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{
		{Kind: schema.KindActorService, Name: "s"}: job("service-1", `["s", "s_0"]`),
		{Kind: schema.KindJob, Name: "many"}:       {ID: "many-1", Spec: &schema.Job{}},
	}}
	at := func(name, job string, attempt, task int, object string) *registry.Endpoint {
		e := &registry.Endpoint{Name: name, JobID: job, Attempt: attempt, Task: task}
		if object != "" {
			e.Metadata = map[string]string{"output": object}
		}
		return e
	}
	endpoints := []*registry.Endpoint{
		at("a", "many-1", 2, 0, "a"), at("other-a", "many-1", 2, 0, "a"), at("b", "many-1", 2, 0, "b"),
		at("a", "many-1", 2, 1, "a"), // alone in its task
		at("s", "service-1", 3, 0, "s"), at("s_0", "service-1", 3, 0, "s"), at("s_0/1", "service-1", 3, 1, "s_0/1"),
		at("in-go", "many-1", 2, 2, ""), at("in-go-too", "many-1", 2, 2, ""),
	}
	for name, want := range map[string][]Output{
		"a":         {{"many-1", 2, 0, "[a] "}, {"many-1", 2, 1, ""}},
		"other-a":   {{"many-1", 2, 0, "[a] "}},
		"b":         {{"many-1", 2, 0, "[b] "}},
		"s_0":       {{"service-1", 3, 0, ""}, {"service-1", 0, 0, ""}},
		"s_0/1":     {{"service-1", 3, 1, ""}},
		"in-go-too": {{"many-1", 2, 2, ""}},
		"another":   nil,
	} {
		if diff := cmp.Diff(want, outputsOf(endpoints, doc, name), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	ended := Output{JobID: "service-1"}
	if !ended.Holds("service-1", 7, 0) || ended.Holds("service-1", 7, 1) || ended.Holds("other", 7, 0) {
		t.Error("a job that names its actor: want the first task of each attempt")
	}
}
