package markdown_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

// token is part of each hostile text, so that it is found wherever one shows.
const token = "EVIL"

// secret is in generated plans wherever a sensitive value is that must not be shown.
const secret = "s3cr3t-d1ce"

// attacks are texts that would be more than text in Markdown, in HTML or on a forge.
func attacks() []string {
	return []string{
		"EVIL", "@EVIL", "@EVIL/team", "a@b.EVIL", "#1 EVIL", "GH-1 EVIL", "EVIL/repo#1", "EVIL@0123456789012345678901234567890123456789", "!1 EVIL", "%EVIL", "~EVIL", "&1 EVIL",
		"http://evil.example/EVIL", "www.evil.example/EVIL", "[EVIL](http://evil.example)", "![EVIL](http://evil.example/x.png)", "[EVIL]: http://evil.example", "<http://evil.example/EVIL>",
		"```\nEVIL\n```", "````\n# EVIL", "~~~\nEVIL", "`EVIL`", "``EVIL", "EVIL`", "\\`EVIL\\", strings.Repeat("`", 70) + "EVIL",
		"<details><summary>EVIL", "</details>EVIL", "</summary></details>\n\n# EVIL", "</code></pre><script>EVIL</script>", "<img src=x onerror=EVIL>", "<!-- EVIL", "--> EVIL", "<![CDATA[EVIL", "<?EVIL",
		"| EVIL | b |\n|---|---|\n| 1 | 2 |", "a | EVIL", "\\| EVIL", "$EVIL$", "$$\nEVIL\n$$", "$`EVIL`$", ":EVIL:", "/close EVIL", "\n/label EVIL", "> EVIL", "> [!CAUTION]\n> EVIL",
		"# EVIL", "\n\n# EVIL", "\r\n# EVIL", "\r# EVIL", "EVIL\n===", "EVIL\n---", "- [x] EVIL", "1. EVIL", "    EVIL", "\tEVIL", " EVIL ", "**EVIL**", "_EVIL_", "~~EVIL~~", "&#64;EVIL", "&lt;b&gt;EVIL", "EVIL  \nEVIL", "EVIL\\\n",
		"\u2028# EVIL", "\u202eEVIL", "\u200bEVIL", "\x00EVIL", "\x1b[31mEVIL", "\xffEVIL", "[[EVIL]]", "[^EVIL]", "[^EVIL]: x", "{{EVIL}}", "+ EVIL", "- EVIL", "--- EVIL", "@@ EVIL @@", strings.Repeat("EVIL ", 200),
	}
}

func anAttack() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(attacks()), rapid.SampledFrom([]string{"`", "\n", " ", "\\", "|", "</details>", "```"}), rapid.String()), 1, 4).Draw(t, "attack")
		return strings.Join(parts, "") + token
	})
}

func jsonOf(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func sealed() map[string]any { return map[string]any{"sealed": secret} }

// anInput is a plan with hostile texts at all places that may have text.
func anInput() *rapid.Generator[markdown.Input] {
	return rapid.Custom(func(t *rapid.T) markdown.Input {
		draw := func(what string) string { return anAttack().Draw(t, what) }
		in := markdown.Input{
			Header: markdown.Header{Directory: draw("directory"), Workspace: draw("workspace"), Commit: draw("commit"), FrayVersion: draw("version"), Run: "https://ci.example/?q=" + draw("run")},
			Plan:   &plan.Plan{Mode: rapid.SampledFrom([]plan.Mode{plan.ModeApply, plan.ModeDestroy, plan.ModeRefreshOnly}).Draw(t, "mode")},
		}
		pl := in.Plan
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			addChanges(t, pl, draw)
		}
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			addr := schema.Address{Kind: schema.KindJob, Name: draw("name")}
			pl.Blocked = append(pl.Blocked, plan.BlockedChange{Addr: addr, Verb: plan.VerbDelete, Detail: draw("detail")})
			pl.Amendments = append(pl.Amendments, plan.Amendment{Verb: rapid.SampledFrom(plan.AmendVerbs()).Draw(t, "amendment"), Addr: addr, From: addr, Slices: []string{draw("slice")}})
			pl.Drift = append(pl.Drift, plan.Drift{Addr: addr, Slice: draw("slice"), Found: draw("found"), Then: draw("then")})
			pl.Pending = append(pl.Pending, plan.Pending{Addr: addr, Reasons: []string{draw("reason"), draw("reason")}})
			pl.Expiries = append(pl.Expiries, plan.Expiry{Addr: addr})
			pl.Capacity = append(pl.Capacity, plan.Capacity{Provider: schema.ProviderName(draw("provider")), After: plan.Amount{Slices: 1}})
			pl.Costs = append(pl.Costs, plan.Cost{Zone: draw("zone"), Type: draw("type"), Else: []plan.CostAlternative{{Type: draw("type")}}, PerSliceHour: accelerators.Price{Low: 1, High: 2}, After: plan.Spend{Slices: 1, PerHour: accelerators.Price{Low: 1, High: 2}}})
			pl.Outputs = append(pl.Outputs, plan.OutputChange{Name: draw("output"), Verb: plan.VerbUpdate, Before: jsonOf(draw("value")), After: jsonOf([]any{draw("value"), sealed()})})
			in.Policies = append(in.Policies, markdown.PolicyResult{
				Name: draw("policy"), Severity: markdown.SeverityDeny, Message: draw("message"), By: draw("by"), Reason: draw("reason"),
				Status: rapid.SampledFrom([]markdown.PolicyStatus{markdown.PolicyPassed, markdown.PolicyFailed, markdown.PolicyError, markdown.PolicyOverridden}).Draw(t, "status"),
			})
			in.Problems = append(in.Problems, markdown.Problem{Severity: rapid.SampledFrom([]markdown.Severity{markdown.SeverityWarn, markdown.SeverityDeny}).Draw(t, "severity"), Summary: draw("summary"), Detail: draw("detail"), File: draw("file"), Line: 3})
		}
		if rapid.IntRange(0, 9).Draw(t, "failed") == 0 {
			in.Plan = nil
		}
		return in
	})
}

// addChanges adds one declaration with a few instances.
func addChanges(t *rapid.T, pl *plan.Plan, draw func(string) string) {
	verb := rapid.SampledFrom([]plan.Verb{plan.VerbNone, plan.VerbCreate, plan.VerbUpdate, plan.VerbRestart, plan.VerbReplace, plan.VerbDelete}).Draw(t, "verb")
	name := draw("name")
	for range rapid.IntRange(1, 5).Draw(t, "instances") {
		c := plan.Change{Addr: schema.Address{Kind: schema.KindJob, Name: name, Key: schema.StringKey(draw("key"))}, Verb: verb, Reason: draw("reason")}
		c.Attrs = []*plan.AttrChange{
			{Path: "command", Before: jsonOf([]any{draw("word"), sealed()}), After: jsonOf([]any{draw("word"), sealed(), draw("word")}), Verb: verb},
			{Path: "environment.env." + draw("variable"), Before: jsonOf(draw("value")), After: jsonOf("a\n" + draw("value") + "\n\nb"), Verb: verb},
			{Path: "labels." + draw("label"), After: jsonOf(map[string]any{draw("field"): draw("value"), "in": sealed()}), Verb: verb},
			{Path: "environment.env.TOKEN", Sensitive: true, Before: jsonOf(secret), After: jsonOf(secret), Verb: verb},
		}
		pl.Changes = append(pl.Changes, c)
		if verb == plan.VerbNone || verb == plan.VerbCreate || verb == plan.VerbUpdate {
			continue
		}
		pl.Running = append(pl.Running, plan.Running{Addr: c.Addr, Verb: verb, Attempt: 1, Seconds: 60, Checkpoint: &plan.Checkpoint{Place: draw("place"), Last: draw("checkpoint")}})
	}
}

// TestReview06HostileTextIsInert is check 6 and 5: whatever stands in names, values, reasons
// and messages, all of it is in code, no element and no link is made by it, each code block
// has what is in the plan, and sensitive values are nowhere.
func TestReview06HostileTextIsInert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anInput().Draw(t, "input")
		text := markdown.Render(in, markdown.Limit{Characters: -1})
		inert(t, &in, text)
	})
}

func inert(t *rapid.T, in *markdown.Input, text string) {
	if strings.Contains(text, secret) {
		t.Errorf("a sensitive value is shown:\n%s", text)
	}
	if !utf8.ValidString(text) {
		t.Errorf("it is not UTF-8: %q", text)
	}
	p := pageOf(t, text)
	allowed := p.links // at most the run's, as often as it is named
	for _, link := range p.links {
		if !strings.HasPrefix(link, "https://ci.example/?q=") {
			t.Errorf("there is a link to %q", link)
		}
	}
	p.check(t, token, allowed...)
	for line := range strings.Lines(text) {
		if text := strings.TrimLeft(line, " "); len(line)-len(text) < 4 && strings.HasPrefix(text, "/") {
			t.Errorf("a line begins like a quick action of GitLab: %q", line)
		}
	}
	if in.Plan != nil && p.tags["h2"] == 1 {
		for _, b := range render.Split(in.Plan, render.Options{Width: 100}).Blocks {
			if want := strings.TrimRight(b.Text, "\n") + "\n"; !strings.Contains("\x00"+strings.Join(p.fence, "\x00"), "\x00"+want) {
				t.Errorf("the code block of %v does not have its text:\n%q\nbut\n%q", b.Changes[0].Addr, want, p.fence)
			}
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}

// TestEachAttackIsInert tries each text alone, in one place after the other.
func TestEachAttackIsInert(t *testing.T) {
	for i, attack := range attacks() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			addr := schema.Address{Kind: schema.KindJob, Name: "a", Key: schema.StringKey(attack)}
			in := markdown.Input{
				Header:   markdown.Header{Directory: attack, Run: "javascript://evil.example/%0Aalert(1)"},
				Policies: []markdown.PolicyResult{{Name: attack, Severity: markdown.SeverityDeny, Status: markdown.PolicyFailed, Message: attack}},
				Problems: []markdown.Problem{{Severity: markdown.SeverityWarn, Summary: attack, Detail: attack, File: attack}},
				Plan: &plan.Plan{
					Changes: []plan.Change{{Addr: addr, Verb: plan.VerbReplace, Reason: attack, Attrs: []*plan.AttrChange{
						{Path: "command", Before: jsonOf([]string{attack}), After: jsonOf(attack), Verb: plan.VerbReplace}, {Path: "labels." + attack, After: jsonOf("x\n" + attack), Verb: plan.VerbReplace},
					}}},
					Running: []plan.Running{{Addr: addr, Verb: plan.VerbReplace, Seconds: 1, Checkpoint: &plan.Checkpoint{Place: attack}}},
					Pending: []plan.Pending{{Addr: addr, Reasons: []string{attack}}},
				},
			}
			text := markdown.Render(in, markdown.Limit{})
			p := pageOf(t, text)
			p.check(t, token)
			if n := p.tags["details"]; n != 2 || p.tags["h2"] != 1 {
				t.Errorf("got %d details and %d titles, want 2 and 1", n, p.tags["h2"])
			}
			if t.Failed() {
				t.Logf("%s", text)
			}
		})
	}
}
