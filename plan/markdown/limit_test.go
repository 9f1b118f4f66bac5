package markdown_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

// large is a plan with n changes, of instances of one declaration or each of its own.
func large(n int, alike bool) *plan.Plan {
	pl := &plan.Plan{Changes: make([]plan.Change, n)}
	for i := range pl.Changes {
		addr := schema.Address{Kind: schema.KindJob, Name: "rollout", Key: schema.IntKey(i)}
		if !alike {
			addr = schema.Address{Kind: schema.KindJob, Name: fmt.Sprintf("rollout_%d", i)}
		}
		attrs := []*plan.AttrChange{
			{Path: "command", Before: jsonOf([]string{"rollout", "--worker=1"}), After: jsonOf([]string{"rollout", fmt.Sprintf("--worker=%d", i)})},
			{Path: "resources.tpu", Before: jsonOf("v5litepod-16"), After: jsonOf("v5litepod-32")},
			{Path: "environment.env.HF_TOKEN", Sensitive: true},
			{Path: "environment.env.WANDB_PROJECT", Before: jsonOf("marin"), After: jsonOf("ümlaut")},
		}
		for k := range attrs {
			attrs[k].Verb = plan.VerbReplace
		}
		pl.Changes[i] = plan.Change{Addr: addr, Verb: plan.VerbReplace, Attrs: attrs}
		pl.Running = append(pl.Running, plan.Running{Addr: addr, Verb: plan.VerbReplace, Attempt: 1, Seconds: int64(60 * i)})
	}
	return pl
}

// TestReview07CutAtAChange is check 7: a plan that does not fit is cut between changes, its
// counts stay those of all, and it states what is left out and where the rest is.
func TestReview07CutAtAChange(t *testing.T) {
	pl := large(2000, false)
	text := markdown.Render(markdown.Input{Plan: pl}, markdown.Limit{})
	if n := utf8.RuneCountInString(text); n > markdown.DefaultCharacters || n < markdown.DefaultCharacters*3/4 {
		t.Errorf("got %d characters, want most of %d", n, markdown.DefaultCharacters)
	}
	if !strings.HasPrefix(text, "## Plan: 0 to create, 2000 to replace, 0 to delete\n") {
		t.Errorf("the title does not have all changes: %.100q", text)
	}
	p := pageOf(t, text)
	for i, b := range render.Split(pl, render.Options{Width: 100}).Blocks {
		if i < len(p.fence) && p.fence[i] != strings.TrimRight(b.Text, "\n")+"\n" {
			t.Fatalf("change %d is not whole:\n%s", i, p.fence[i])
		}
	}
	shown := len(p.fence)
	if want := fmt.Sprintf("%d of 2000 changes", 2000-shown); shown == 0 || !strings.Contains(text, want) {
		t.Errorf("%d changes are shown, and %q is not in it:\n%.3000s", shown, want, text)
	}
	for _, want := range []string{"> [!IMPORTANT]", "`fray show PLANFILE`", "The counts are of all", "**Replace** (2000)", "and 1976 more", "> - `job.rollout_1999` will be **replaced**: attempt 1 has run for 1d09h;"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in it:\n%.3000s", want, text)
		}
	}
	if p.tags["details"] != 1 || strings.Count(text, "</details>") != 1 {
		t.Errorf("details are not closed: %v", p.tags)
	}
	elsewhere := markdown.Render(markdown.Input{Plan: pl, Header: markdown.Header{Run: "https://ci.example/7"}}, markdown.Limit{Characters: 5000})
	if n := utf8.RuneCountInString(elsewhere); n > 5000 || !strings.Contains(elsewhere, "see the [run](<https://ci.example/7>)") {
		t.Errorf("got %d characters, and want at most 5000, with a link to the run:\n%s", n, elsewhere)
	}
	whole := markdown.Render(markdown.Input{Plan: pl}, markdown.Limit{Characters: -1})
	if n := len(pageOf(t, whole).fence); n != 2000 || strings.Contains(whole, "Not shown here") {
		t.Errorf("without a limit there are %d changes, want all", n)
	}
	stated := markdown.Render(markdown.Input{Plan: pl}, markdown.Limit{Rest: "step summary of `run`"})
	if !strings.Contains(stated, "the rest: `` step summary of `run` ``") {
		t.Errorf("where the rest is was not stated:\n%.2000s", stated)
	}
}

// TestReview08ManyChangesAreGrouped is check 8: instances of one declaration that change
// alike are shown once. BenchmarkRender measures the time.
func TestReview08ManyChangesAreGrouped(t *testing.T) {
	text := markdown.Render(markdown.Input{Plan: large(2000, true)}, markdown.Limit{})
	if n := utf8.RuneCountInString(text); n > 3000 {
		t.Errorf("got %d characters, want one change for all:\n%s", n, text)
	}
	for _, want := range []string{
		"2000 to replace", "- `job.rollout[0]` … `job.rollout[1999]` (2000)\n", "(1999 more) must be replaced likewise", "differing in command",
		"> - `job.rollout[0]` … `job.rollout[1999]` (2000) will be **replaced**: they have run for less than a second to 1d09h",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in it:\n%s", want, text)
		}
	}
}

// TestLimitHolds is that no text is longer than its limit, that its title is that of the whole
// plan, and that what is left is as inert as all of it.
func TestLimitHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anInput().Draw(t, "input")
		limit := rapid.IntRange(markdown.LeastCharacters, 12_000).Draw(t, "limit")
		text := markdown.Render(in, markdown.Limit{Characters: limit, Rest: anAttack().Draw(t, "rest")})
		if n := utf8.RuneCountInString(text); n > limit {
			t.Errorf("got %d characters, want at most %d", n, limit)
		}
		whole := markdown.Render(in, markdown.Limit{Characters: -1})
		title, _, _ := strings.Cut(text, "\n")
		if want, _, _ := strings.Cut(whole, "\n"); title != want {
			t.Errorf("got title %q, want %q", title, want)
		}
		all := map[string]bool{}
		for _, fence := range pageOf(t, whole).fence {
			all[fence] = true
		}
		p := pageOf(t, text)
		p.check(t, token, p.links...)
		for _, fence := range p.fence {
			if strings.HasPrefix(fence, "#") && strings.Contains(fence, " {") && !all[fence] && strings.Count(fence, "\n  }") > 0 {
				t.Errorf("a change is not whole:\n%s", fence)
			}
		}
		if p.tags["details"] != strings.Count(text, "\n</details>\n") {
			t.Errorf("%d details are opened, and not as many closed", p.tags["details"])
		}
		if t.Failed() {
			t.Logf("%s", text)
		}
	})
}

// BenchmarkRender measures plans of 2,000 changes.
func BenchmarkRender(b *testing.B) {
	for _, bench := range []struct {
		name  string
		alike bool
		limit int
	}{{"alike", true, 0}, {"different", false, 0}, {"different-whole", false, -1}} {
		pl := large(2000, bench.alike)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = markdown.Render(markdown.Input{Plan: pl}, markdown.Limit{Characters: bench.limit})
			}
		})
	}
}
