package markdown_test

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

// The checks of reviews by their numbers, as far as they are about Markdown. Of the goldens
// none, replace, blocked, amended and waiting show some of them.

func reviewOf(t *testing.T, name string) (markdown.Input, string) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	in := example(t, archive)
	return in, markdown.Render(in, markdown.Limit{})
}

func wants(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

func TestReview01NoChangeIsOneLine(t *testing.T) {
	for _, name := range []string{"none", "refresh_none"} {
		_, text := reviewOf(t, name)
		if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") || !strings.HasPrefix(text, "**No changes") {
			t.Errorf("%s: want one line, got:\n%s", name, text)
		}
	}
	// A policy that fails without a change is something to review.
	in := markdown.Input{Plan: &plan.Plan{}, Policies: []markdown.PolicyResult{{Name: "p", Severity: markdown.SeverityWarn, Status: markdown.PolicyFailed}}}
	wants(t, markdown.Render(in, markdown.Limit{}), "## Plan: no changes\n", "`p` (warn) failed")
}

// TestReview02CountsOfTheTitle is check 2, for every golden.
func TestReview02CountsOfTheTitle(t *testing.T) {
	examples(t, func(t *testing.T, _ string, archive *txtar.Archive) {
		t.Helper()
		in := example(t, archive)
		if in.Plan == nil || in.Plan.Counts()[plan.VerbNone] == len(in.Plan.Changes) && len(in.Plan.Amendments) == 0 {
			return
		}
		title, _, _ := strings.Cut(markdown.Render(in, markdown.Limit{}), "\n")
		if !strings.HasSuffix(title, ": "+render.Counts(in.Plan)) {
			t.Errorf("got title %q, want the counts %q", title, render.Counts(in.Plan))
		}
	})
}

// TestReview03MarksInTheFirstColumn is check 3: each line of a diff begins with its mark, and
// a replacement shows what forces it.
func TestReview03MarksInTheFirstColumn(t *testing.T) {
	_, text := reviewOf(t, "replace")
	wants(t, text,
		"\n-/+ job \"train\" {\n", "\n~         tpu = \"v5litepod-4\" -> \"v5litepod-16\" # forces replacement\n", "\n~             SEED = \"1\" -> \"2\"\n",
		"forced by `resources.tpu`")
	_, text = reviewOf(t, "restart")
	wants(t, text, "\n-             two\n", "\n+             2\n", "\n              one\n")
	_, text = reviewOf(t, "delete")
	wants(t, text, "\n-     command = [\"shard\", \"en\"] -> null\n")
	examples(t, func(t *testing.T, _ string, archive *txtar.Archive) {
		t.Helper()
		for _, fence := range pageOf(t, markdown.Render(example(t, archive), markdown.Limit{})).fence {
			for line := range strings.Lines(fence) {
				if trimmed := strings.TrimLeft(line, " "); line != trimmed && len(trimmed) > 1 && trimmed[1] == ' ' && strings.ContainsRune("+-~", rune(trimmed[0])) {
					t.Errorf("the mark is not in the first column: %q", line)
				}
			}
		}
	})
}

// TestReview04BoxOnTop is check 4: what ends although it runs stands before all else, with how
// long it has run, its last checkpoint if that is known, and what forces it.
func TestReview04BoxOnTop(t *testing.T) {
	_, text := reviewOf(t, "replace")
	box, rest, _ := strings.Cut(text, "**Cost:**")
	wants(t, box, "> [!CAUTION]\n", "`job.train` will be **replaced**: attempt 3 has run for 3d07h; last checkpoint `step_1200`, 12m00s old, in `/mnt/checkpoints`; forced by `resources.tpu`")
	if strings.Contains(box, "job.idle") || strings.Contains(rest, "[!CAUTION]") {
		t.Errorf("what does not run is in the box, or there is another one:\n%s", text)
	}
	_, text = reviewOf(t, "delete")
	wants(t, text, "> - `reservation.pool` will be **deleted**: 4 slices up for 30d00h", "keeps checkpoints in `gs://bucket/ckpt`")
	_, text = reviewOf(t, "restart")
	wants(t, text, "> [!WARNING]\n", "`actor_service.inference[0]` will be **restarted**: attempt 12 has run for 1d00h")
	for _, name := range []string{"create", "update", "amended", "outputs", "blocked"} {
		if _, text = reviewOf(t, name); strings.Contains(text, "Runs now") {
			t.Errorf("%s: nothing that runs ends, and yet there is a box:\n%s", name, text)
		}
	}
}

// TestReview05SensitiveValues is check 5: a sensitive value is not shown, nor is one within a
// string's list, an object or an output. TestReview06HostileTextIsInert has them everywhere.
func TestReview05SensitiveValues(t *testing.T) {
	pl := &plan.Plan{
		Changes: []plan.Change{{Addr: schema.Address{Kind: schema.KindJob, Name: "a"}, Verb: plan.VerbCreate, Attrs: []*plan.AttrChange{
			{Path: "environment.env.TOKEN", Sensitive: true, After: jsonOf(secret), Verb: plan.VerbCreate},
			{Path: "command", After: jsonOf([]any{"a", sealed(), map[string]any{"b": sealed()}}), Verb: plan.VerbCreate},
		}}},
		Outputs: []plan.OutputChange{{Name: "o", Verb: plan.VerbCreate, Sensitive: true, After: jsonOf(secret)}, {Name: "p", Verb: plan.VerbCreate, After: jsonOf(sealed())}},
	}
	text := markdown.Render(markdown.Input{Plan: pl}, markdown.Limit{})
	if n := strings.Count(text, "(sensitive value)"); n != 5 || strings.Contains(text, secret) {
		t.Errorf("got %d placeholders, want 5 and no value:\n%s", n, text)
	}
}

// TestReview09Cost is check 9: low and high, before and after, for an hour and a month; what is
// not known is stated.
func TestReview09Cost(t *testing.T) {
	_, text := reviewOf(t, "replace")
	wants(t, text, "**Cost:** `$3.36–$12.48` → `$6.72–$24.96` an hour, `$2,452.80–$9,110.40` → `$4,905.60–$18,220.80` a month (730 hours).")
	_, text = reviewOf(t, "create")
	wants(t, text, "; the price of 0 → 1 slices is not known.", "chips, the price is not known")
	_, text = reviewOf(t, "destroy")
	wants(t, text, "**Cost:** the price of 1 → 0 slices is not known.")
}

// TestReview10Outlook is check 10: capacity before and after, and why what waits does.
func TestReview10Outlook(t *testing.T) {
	_, text := reviewOf(t, "waiting")
	wants(t, text, "gcp 2 -> 3 slices, 2 -> 6 hosts, 8 -> 24 chips (limit 8 slices)", "quota TPUV5sLitepodPerProject of us-west4 is used up; next try in 10m",
		"waits for job.b, which failed (exit status 1)", "reservation.night has ended at 2026-07-01 11:00:00 UTC.")
}

// TestReview11BlockedAndAmended is check 11: what a lifecycle rule blocks, and what moves, is
// imported or released.
func TestReview11BlockedAndAmended(t *testing.T) {
	_, text := reviewOf(t, "blocked")
	wants(t, text, "> [!CAUTION]\n> **Blocked by prevent_destroy, and all of this plan with it:**\n", "> - `job.train` is not to be replaced: ")
	_, text = reviewOf(t, "amended")
	wants(t, text, "# (moved from job.trainer)", "# job.a has moved to job.b", "will be imported", "# job.sweep will no longer be managed by fray, and runs on", "1 to import, 2 to move", "1 to forget")
}

// TestPolicies is how results are shown for which fray plan does not judge itself.
func TestPolicies(t *testing.T) {
	_, text := reviewOf(t, "policies")
	box, rest, _ := strings.Cut(text, "**Policies**")
	wants(t, box, "`no_on_demand` (deny) failed: ", "`images_pinned` (warn) error: ")
	wants(t, rest, "`zones` (deny) overridden: `job.a may run in europe-west4-a.`; allowed by `ada`: `agreed in the meeting of 1 July`", "`labels` (warn) failed", "`retries_bounded` (deny) passed")
}

// TestLinkToTheRun: only an http or https URL without a user becomes a link, and no sign of it
// ends the link.
func TestLinkToTheRun(t *testing.T) {
	for to, want := range map[string]string{
		"https://ci.example/run/7?a=b&c=d#e": "https://ci.example/run/7?a=b&c=d#e", "http://ci.example": "http://ci.example",
		"https://ci.example/>)[x](http://evil.example)\n# EVIL": "https://ci.example/%3E%29%5Bx%5D%28http://evil.example%29%0A#%20EVIL",
		"javascript:alert(1)": "", "ftp://ci.example": "", "https://": "", "https:///x": "", "https://user:password@ci.example": "", "//ci.example": "", "": "",
		"https://ci.example/" + strings.Repeat("x", 500): "",
	} {
		text := markdown.Render(markdown.Input{Header: markdown.Header{Run: to}}, markdown.Limit{})
		p := pageOf(t, text)
		p.check(t, token, want)
		if got := strings.Join(p.links, " "); got != want {
			t.Errorf("%q: got a link to %q, want %q", to, got, want)
		}
	}
}
