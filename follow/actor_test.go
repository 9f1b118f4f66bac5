package follow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
	"github.com/fray-ml/fray/terminal"
)

// --actor prints what the task of an actor writes, of a task with several the lines of
// that one, also once it is registered no more.
func TestLogsOfAnActor(t *testing.T) {
	s := storetest.NewMemory()
	put(t, s, 0, true, wrote{1, "starting\n"}, wrote{2, "[a] one\n[b] two\n"}, wrote{3, "[a] three\n[ab] four\n"})
	put(t, s, 1, true, wrote{1, "[b] five\n"})
	job := &state.Job{ID: "id", Attempt: 1, Spec: &schema.Job{}, Attempts: []state.Attempt{{Number: 1, Outcome: schema.TaskSucceeded, Tasks: make([]state.Task, 2)}}}
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{{Kind: schema.KindJob, Name: "a"}: job}}
	endpoint := func(name string, task int) *registry.Endpoint {
		return &registry.Endpoint{Name: name, JobID: "id", Attempt: 1, Task: task, Metadata: map[string]string{"output": name}}
	}
	register(t, s, endpoint("a", 0), endpoint("b", 0), endpoint("b", 1))
	for _, test := range []struct{ actor, want string }{
		{"", "job.a/0 | starting job.a/1 | [b] five job.a/0 | [a] one job.a/0 | [b] two job.a/0 | [a] three job.a/0 | [ab] four"},
		{"a", "[a] one [a] three"},
		{"b", "job.a/1 | [b] five job.a/0 | [b] two"},
	} {
		q := Query{Actor: test.actor, Task: -1, Tail: -1}
		out := &screen{}
		p := newLogPrinter(&terminal.Terminal{Stdout: out}, s, q)
		for range 2 {
			if err := q.locate(t.Context(), s, doc); err != nil {
				t.Fatal(err)
			}
			if ended, err := q.open(doc, p); err != nil {
				t.Fatal(ended, err)
			}
		}
		if err := p.drain(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); got != test.want {
			t.Errorf("of %q it prints %q, want %q", test.actor, got, test.want)
		}
	}
	q := Query{Actor: "a", Task: -1}
	if err := q.locate(t.Context(), s, doc); err != nil {
		t.Fatal(err)
	}
	register(t, s)
	if err := q.locate(t.Context(), s, doc); err != nil || len(q.outputs) != 1 || q.outputs[0] != (actors.Output{JobID: "id", Attempt: 1, Prefix: "[a] "}) {
		t.Errorf("an actor that has left: got %+v, %v", q.outputs, err)
	}
}

func TestLogsOfAnUnknownActor(t *testing.T) {
	env := map[string]schema.Text{"FRAY_ACTOR_NAMES": schema.Plain(`["counter"]`)}
	job := &state.Job{ID: "id", Spec: &schema.Job{Environment: schema.Environment{Env: env}}}
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{{Kind: schema.KindJob, Name: "a"}: job}}
	for actor, want := range map[string]string{
		"conter": `no actor "conter" has written anything; did you mean "counter"?`,
		"xyz":    `no actor "xyz" has written anything; fray actor list shows`,
	} {
		q := Query{Actor: actor, Task: -1}
		_, err := q.open(doc, newLogPrinter(&terminal.Terminal{}, storetest.NewMemory(), q))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func register(t *testing.T, s store.Store, endpoints ...*registry.Endpoint) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"endpoints": endpoints})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.EndpointsKey, data, store.Any); err != nil {
		t.Fatal(err)
	}
}
