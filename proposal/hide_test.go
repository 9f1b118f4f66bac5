package proposal

import (
	"bytes"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestReview05MessagesHideSensitiveValues is check 5 for messages: of policies, and of the
// diagnostics of the files.
func TestReview05MessagesHideSensitiveValues(t *testing.T) {
	sealer, err := state.NewKey(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(value string) schema.Text {
		text, err := schema.Secret(value).Seal(sealer)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	job := schema.ScopedAddress(schema.KindJob, "a")
	l := &configuration.Loaded{
		Sealer:  sealer,
		Desired: schema.Desired{Jobs: []schema.Job{{Addr: job, Command: []schema.Text{sealed("desired-1")}, Environment: schema.Environment{Env: map[string]schema.Text{"T": sealed("desired-2")}}, Sensitive: []schema.Text{sealed("source-3")}}}},
		Config:  &schema.Config{Outputs: map[string]schema.Output{"o": {Sensitive: true, Secret: schema.Secret("output-4")}}},
		Document: &state.Document{
			Jobs:    map[schema.Address]*state.Job{job: {Spec: &schema.Job{Command: []schema.Text{sealed("recorded-5")}}}},
			Outputs: map[string]schema.Output{"p": {Sensitive: true, Secret: sealed("recorded-6")}},
		},
	}
	hide := Hide(l)
	for _, secret := range []string{"desired-1", "desired-2", "source-3", "output-4", "recorded-5", "recorded-6"} {
		if got := hide("job.a has x" + secret + "y, which is denied"); got != "job.a has x(sensitive value)y, which is denied" {
			t.Errorf("got %q", got)
		}
	}
	diags := hcl.Diagnostics{
		{Severity: hcl.DiagWarning, Summary: "W recorded-5", Detail: "desired-1", Subject: &hcl.Range{Filename: "/x/infra/sub/desired-2.hcl", Start: hcl.Pos{Line: 3}}},
		{Severity: hcl.DiagError, Summary: "E", Subject: &hcl.Range{Filename: "/elsewhere/f.hcl", Start: hcl.Pos{Line: 4}}},
	}
	got := Problems("/x/infra", diags, hide)
	want := []markdown.Problem{
		{Severity: markdown.SeverityDeny, Summary: "E", File: "f.hcl", Line: 4},
		{Severity: markdown.SeverityWarn, Summary: "W (sensitive value)", Detail: "(sensitive value)", File: "sub/desired-2.hcl", Line: 3},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
