package status

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// onGPUs is a view of a job that prefers a TPU and was given GPUs.
func onGPUs() (*View, schema.Address) {
	v := viewOf(map[string]*state.Job{"a": {Status: schema.JobRunning, Ready: true, Choice: &state.Choice{
		Accelerator: "h100:8", Reason: state.ChoiceBlocked, At: noon,
		Passed: []state.PassedAlternative{{Accelerator: "v5litepod-16", Cause: state.PassedCapacity, Text: "us-east5-b: no capacity"}},
	}}})
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	v.Doc.Jobs[addr].Spec.Resources.Accelerators = []schema.Accelerator{"v5litepod-16", "h100:8"}
	return v, addr
}

// Status shows which alternative a job has, and why none that it prefers.
func TestChosenAlternative(t *testing.T) {
	v, addr := onGPUs()
	j := v.Doc.Jobs[addr]
	if got, want := v.note(addr, j), "[on h100:8, alternative 2 of 2]"; got != want {
		t.Errorf("the note is %q, want %q", got, want)
	}
	var out bytes.Buffer
	v.attempts(&terminal.Terminal{Stdout: &out}, addr)
	const want = "  accelerator: h100:8, as better ones were not to be had\n    passed: v5litepod-16 (capacity): us-east5-b: no capacity\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwithout\n%s", out.String(), want)
	}
	text, err := json.Marshal(v.Document().Jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := `"choice":{"accelerator":"h100:8","reason":"blocked","at":"`; !strings.Contains(string(text), want) {
		t.Errorf("got %s, without %s", text, want)
	}
	if want := `"passed":[{"accelerator":"v5litepod-16","cause":"capacity","text":"us-east5-b: no capacity"}]`; !strings.Contains(string(text), want) {
		t.Errorf("got %s, without %s", text, want)
	}
}

// A job on what it prefers has no note of it, nor one without a choice.
func TestFirstAlternative(t *testing.T) {
	v, addr := onGPUs()
	j := v.Doc.Jobs[addr]
	j.Choice = &state.Choice{Accelerator: "v5litepod-16", Reason: state.ChoiceFirst, At: noon}
	if got := v.note(addr, j); got != "" {
		t.Errorf("on its first alternative the note is %q", got)
	}
	if got, want := choiceLines(j), []string{"accelerator: v5litepod-16, the first of its alternatives"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	j.Spec.Resources.Accelerators = nil
	if got := choiceLines(j); got != nil {
		t.Errorf("without alternatives: got %q", got)
	}
}
