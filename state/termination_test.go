package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/fray-ml/fray/state"
)

// An older fray recorded only a text: its cause follows from what else was recorded,
// never from what the text reads.
func TestTerminationOfOlderDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		members string
		want    state.Termination
	}{
		"to stay":             {``, state.Termination{}},
		"a text":              {`,"doomed":"it was preempted"`, state.Termination{Cause: state.CauseUnknown, Text: "it was preempted"}},
		"taken away":          {`,"doomed":"it has ended","taken":true`, state.Termination{Cause: state.CausePreempted, Text: "it has ended"}},
		"typed":               {`,"terminating":{"cause":"idle","text":"x"}`, state.Termination{Cause: state.CauseIdle, Text: "x"}},
		"typed beside a text": {`,"doomed":"y","terminating":{"cause":"idle","text":"x"}`, state.Termination{Cause: state.CauseIdle, Text: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := fmt.Sprintf(`{"format_version":1,"lineage":"l","slices":{"s":{"spec":{"name":"s"},"asked_at":"2026-01-02T03:04:05Z"%s}}}`, c.members)
			d, err := state.Decode([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Slices["s"].Terminating; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			written, err := state.Encode(d)
			if err != nil {
				t.Fatal(err)
			}
			again, err := state.Decode(written)
			if err != nil || again.Slices["s"].Terminating != c.want {
				t.Errorf("written and read again: got %+v, %v, want %+v", again.Slices["s"].Terminating, err, c.want)
			}
			var raw struct {
				Slices map[string]map[string]any `json:"slices"`
			}
			if err := json.Unmarshal(written, &raw); err != nil {
				t.Fatal(err)
			}
			if _, old := raw.Slices["s"]["doomed"]; old {
				t.Errorf("the old member is written: %s", written)
			}
		})
	}
}

// The list of causes is that of the constants: facts first, then decisions.
func TestCauses(t *testing.T) {
	all := state.Causes()
	if len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) || slices.Contains(all, state.CauseNone) {
		t.Errorf("got %q, want each cause once and not none", all)
	}
	first := slices.IndexFunc(all, state.Cause.IsDecision)
	for i, c := range all {
		if isFact := i < first || c == state.CauseUnknown; c.IsDecision() == isFact {
			t.Errorf("%s is at %d: want facts before decisions, and the unknown one last", c, i)
		}
	}
	decided := state.Termination{Cause: state.CauseMoved}
	happened := state.Termination{Cause: state.CauseDead, Decision: state.CauseMoved}
	if decided.Decided() != state.CauseMoved || happened.Decided() != state.CauseMoved || (state.Termination{Cause: state.CauseDead}).Decided() != state.CauseNone {
		t.Error("Decided is not the decision")
	}
}

// The page of `status --json` names every cause, in their order.
func TestCausesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/status-json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := bytes.Cut(page, []byte("### Causes of a deletion"))
	section, _, _ = bytes.Cut(section, []byte("\n## "))
	var named []state.Cause
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (decision: )?").FindAllSubmatch(section, -1) {
		c := state.Cause(row[1])
		named = append(named, c)
		if c.IsDecision() != (len(row[2]) > 0) {
			t.Errorf("docs/status-json.md: %s is a decision: %t", c, c.IsDecision())
		}
	}
	if !slices.Equal(named, state.Causes()) {
		t.Errorf("docs/status-json.md names %q, want %q", named, state.Causes())
	}
}
