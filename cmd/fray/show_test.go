package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// shownState has one of each kind of record that show prints.
func shownState() *state.Document {
	job := &schema.Job{
		Addr: schema.Address{Kind: schema.KindJob, Group: "math", Name: "trainer", Key: schema.StringKey("a")}, Namespace: "rl",
		Command:     []schema.Text{schema.Plain("train")},
		Resources:   schema.Resources{Provider: schema.ProviderLocal, TPU: "v5litepod-4", Slices: 1},
		Environment: schema.Environment{Env: map[string]schema.Text{"PEER": schema.UnknownText(), "TOKEN": schema.Secret("hunter2")}},
	}
	job.Resources.Accelerators = []schema.Accelerator{"v5litepod-4", "h100:4"}
	space := schema.Address{Kind: schema.KindNamespace, Name: "rl"}
	attempt := state.Attempt{Number: 2, StartedAt: time.Unix(0, 0), Slices: []string{"trainer-a-0-1a2b"}, Tasks: []state.Task{
		{Address: "127.0.0.2", Started: true, State: schema.TaskRunning, Ports: map[string]int{"http": 20001}},
	}}
	return &state.Document{
		FormatVersion: state.FormatVersion, FrayVersion: "0.1.0", Lineage: "5c1f2d9e7a30", Serial: 41, Revision: 7,
		Resources: map[schema.Address]state.Resource{space: {Namespace: &schema.Namespace{Addr: space, MaxChips: 8}}},
		Jobs: map[schema.Address]*state.Job{job.Addr: {
			ID: "math-trainer-a-0c1d", Spec: job, Status: schema.JobRunning, Reason: "task 0 is not healthy yet", Slices: attempt.Slices,
			Attempt: 2, Failures: 1, Attempts: []state.Attempt{attempt},
			Choice: &state.Choice{Accelerator: "h100:4", Reason: state.ChoiceBlocked, At: time.Unix(0, 0).UTC(), Passed: []state.PassedAlternative{
				{Accelerator: "v5litepod-4", Cause: state.PassedCapacity, Text: "no capacity"},
			}},
		}},
		Outputs: map[string]schema.Output{
			"address": {Value: json.RawMessage(`"127.0.0.2"`), Description: "where it is"},
			"token":   {Secret: schema.Secret("hunter2"), Sensitive: true},
			"not_yet": {Unknown: true},
		},
	}
}

func TestShowJSONDoc(t *testing.T) {
	var out bytes.Buffer
	if err := terminal.New(nil, &out, nil).PrintJSON(stateAsJSON(shownState())); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Fatalf("a secret is shown:\n%s", out.String())
	}
	readFormatDoc(t, "show-json.md").check(t, out.Bytes(), "resources[].facts.ports")
}

func TestShowState(t *testing.T) {
	var out bytes.Buffer
	if err := showState(terminal.New(nil, &out, nil), shownState()); err != nil {
		t.Fatal(err)
	}
	const want = `# namespace.rl:
namespace "rl" {
    max_chips = 8
}

# job_group.math.job.trainer["a"]:
job "trainer" {
    command     = ["train"]
    namespace   = "rl"
    stop_grace  = "0s"
    id          = "math-trainer-a-0c1d"
    status      = "running"
    ready       = false
    reason      = "task 0 is not healthy yet"
    attempt     = 2
    failures    = 1
    preemptions = 0
    slices      = ["trainer-a-0-1a2b"]
    choice      = {
        accelerator = "h100:4"
        at          = "1970-01-01T00:00:00Z"
        passed      = [
            {
                accelerator = "v5litepod-4"
                cause       = "capacity"
                text        = "no capacity"
            },
        ]
        reason      = "blocked"
    }
    addresses   = ["127.0.0.2"]
    ports       = { http = 20001 }

    resources {
        provider     = "local"
        accelerators = ["v5litepod-4", "h100:4"]
        slices       = 1
        preemptible  = false
    }
    environment {
        env = {
            PEER  = (known after apply)
            TOKEN = (sensitive value)
        }
    }
    retries {
        failure    = 0
        preemption = 0
    }
}

Outputs:

address = "127.0.0.2"
not_yet = (known after apply)
token = (sensitive value)
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := showState(terminal.New(nil, &out, nil), &state.Document{}); err != nil || !strings.Contains(out.String(), "The state is empty") {
		t.Errorf("of an empty state: got %q, %v", out.String(), err)
	}
}

func TestGraphQuotes(t *testing.T) {
	if got, want := dotQuoted("a\"b\\c\nd"), `"a\"b\\c\nd"`; got != want {
		t.Errorf("DOT: got %s, want %s", got, want)
	}
	if got, want := mermaidQuoted("a\"b#<c>\nd"), `"a#quot;b#35;#lt;c#gt;<br>d"`; got != want {
		t.Errorf("Mermaid: got %s, want %s", got, want)
	}
}
