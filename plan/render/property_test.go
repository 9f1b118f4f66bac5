package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

// secret stands in generated plans wherever a secret might by mistake.
const secret = "secret-d1ce"

func jsonOf(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func sealed() map[string]any { return map[string]any{"sealed": secret} }

func genValue() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		text := rapid.OneOf(
			rapid.SampledFrom([]string{"", "a", "b", "one\ntwo\nthree", "one\n2\nthree\n", "\x1b[31m", "line\r\n", `"\`, "\u202e"}),
			rapid.String(),
		)
		switch rapid.IntRange(0, 6).Draw(t, "kind of value") {
		case 0:
			return nil
		case 1:
			return jsonOf(rapid.IntRange(-5, 5).Draw(t, "number"))
		case 2:
			return jsonOf(text.Draw(t, "text"))
		case 3:
			return jsonOf(rapid.SliceOfN(text, 0, 8).Draw(t, "list"))
		case 4:
			return jsonOf([]any{text.Draw(t, "word"), sealed(), map[string]any{"unknown": true}})
		case 5:
			return jsonOf(map[string]any{text.Draw(t, "key"): text.Draw(t, "value"), "in": []any{map[string]any{"token": sealed()}}})
		default:
			return jsonOf(sealed())
		}
	})
}

func genAttr(path string) *rapid.Generator[*plan.AttrChange] {
	return rapid.Custom(func(t *rapid.T) *plan.AttrChange {
		a := &plan.AttrChange{
			Path:      path,
			Sensitive: rapid.IntRange(0, 3).Draw(t, "sensitive") == 0,
			Unknown:   rapid.IntRange(0, 5).Draw(t, "unknown") == 0,
			Verb:      rapid.SampledFrom(verbs()).Draw(t, "attribute verb"),
			Before:    genValue().Draw(t, "before"),
			After:     genValue().Draw(t, "after"),
		}
		if a.Sensitive { // by mistake both are there
			a.Before, a.After = jsonOf(secret+"-1"), jsonOf([]string{secret + "-2"})
		}
		return a
	})
}

func verbs() []plan.Verb {
	return []plan.Verb{
		plan.VerbNone, plan.VerbCreate, plan.VerbUpdate, plan.VerbRestart, plan.VerbReplace, plan.VerbDelete,
	}
}

// genPlan makes plans with a few blocks of many instances, which are often but
// not always alike.
func genPlan() *rapid.Generator[*plan.Plan] {
	return rapid.Custom(func(t *rapid.T) *plan.Plan {
		p := &plan.Plan{}
		for b := range rapid.IntRange(0, 3).Draw(t, "blocks") {
			verb := rapid.SampledFrom(verbs()).Draw(t, "verb")
			attrs := genAttrs(t)
			for i := range rapid.IntRange(1, 6).Draw(t, "instances") {
				c := plan.Change{Verb: verb, Attrs: attrs}
				c.Addr = schema.Address{Kind: schema.KindJob, Name: "j" + strconv.Itoa(b), Key: schema.IntKey(i)}
				if rapid.IntRange(0, 2).Draw(t, "odd") == 0 {
					c.Attrs = genAttrs(t)
				}
				if rapid.IntRange(0, 4).Draw(t, "other") == 0 {
					c.Verb = rapid.SampledFrom(verbs()).Draw(t, "other verb")
				}
				p.Changes = append(p.Changes, c)
			}
		}
		return p
	})
}

func genAttrs(t *rapid.T) []*plan.AttrChange {
	var attrs []*plan.AttrChange
	for _, path := range []string{
		"command", "resources.tpu", "resources.ports.http", "environment.uv", "environment.uv.extras",
		"environment.env.TOKEN", "environment.env.A.B", "health_check.exec", "labels.x",
	} {
		if rapid.Bool().Draw(t, path) {
			attrs = append(attrs, genAttr(path).Draw(t, "attribute"))
		}
	}
	return attrs
}

func textOf(t *rapid.T, p *plan.Plan, opts render.Options) string {
	var b bytes.Buffer
	if err := render.Text(&b, p, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNoSecretIsEverShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan().Draw(t, "plan")
		var b bytes.Buffer
		if err := render.JSON(&b, p, meta()); err != nil {
			t.Fatal(err)
		}
		outputs := []string{b.String()}
		for _, width := range []int{0, 40, 400} {
			for _, verbose := range []bool{false, true} {
				outputs = append(outputs, textOf(t, p, render.Options{Width: width, Verbose: verbose, Color: verbose}))
			}
		}
		for _, out := range outputs {
			if strings.Contains(out, secret) {
				t.Fatalf("a secret is shown:\n%s", out)
			}
		}
	})
}

var counted = regexp.MustCompile(`(\d+) to ([a-z]+)`)

func TestCountsAreThePlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan().Draw(t, "plan")
		want := p.Counts()
		got := map[plan.Verb]int{plan.VerbNone: want[plan.VerbNone]} // the text does not count those
		for line := range strings.Lines(textOf(t, p, render.Options{})) {
			if rest, ok := strings.CutPrefix(line, "Plan: "); ok {
				for _, m := range counted.FindAllStringSubmatch(rest, -1) {
					n, err := strconv.Atoi(m[1])
					if err != nil {
						t.Fatal(err)
					}
					got[plan.Verb(m[2])] += n
				}
			}
		}
		var b bytes.Buffer
		if err := render.JSON(&b, p, meta()); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Counts  map[plan.Verb]int
			Changes []plan.Change
		}
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		for _, v := range verbs() {
			if got[v] != want[v] || doc.Counts[v] != want[v] {
				t.Errorf("%s: text says %d, JSON %d, want %d", v, got[v], doc.Counts[v], want[v])
			}
		}
		if len(doc.Changes) != len(p.Changes) {
			t.Errorf("JSON lists %d changes, want %d", len(doc.Changes), len(p.Changes))
		}
	})
}

var (
	shown  = regexp.MustCompile(`(?m)^  # (job\.j\d\[\d\]) (will|must) be`)
	folded = regexp.MustCompile(`\((\d+) more\)`)
)

// TestNothingIsLeftOut: each change has a heading, or is one of those that a
// fold counts; verbosely, each has a heading.
func TestNothingIsLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan().Draw(t, "plan")
		want := len(p.Changes) - p.Counts()[plan.VerbNone]
		text := textOf(t, p, render.Options{Width: 1000})
		got := len(shown.FindAllString(text, -1))
		for _, m := range folded.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
		if got != want {
			t.Errorf("got %d changes, want %d, in\n%s", got, want, text)
		}
		verbose := shown.FindAllString(textOf(t, p, render.Options{Verbose: true}), -1)
		if len(verbose) != want {
			t.Errorf("verbosely got %d changes, want %d", len(verbose), want)
		}
	})
}

// TestTextCannotDriveTheTerminal: whatever the plan holds, what is written
// without color is printable.
func TestTextCannotDriveTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan().Draw(t, "plan")
		text := rapid.String()
		p.Drift = []plan.Drift{{Slice: text.Draw(t, "slice"), Found: text.Draw(t, "found"), Then: text.Draw(t, "then")}}
		p.Pending = []plan.Pending{{Reasons: []string{text.Draw(t, "reason")}}}
		p.Changes = append(p.Changes, plan.Change{
			Addr: schema.Address{Kind: schema.KindJob, Name: "k", Key: schema.StringKey(text.Draw(t, "key"))},
			Verb: plan.VerbUpdate, Reason: text.Draw(t, "why"),
		})
		for i, r := range textOf(t, p, render.Options{Verbose: true}) {
			if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q at byte %d", fmt.Sprintf("%c", r), i)
			}
		}
	})
}

// TestWhatIsNoJSONIsShownAsItIs: a value that cannot be parsed is no reason to
// show nothing, or to fall over.
func TestWhatIsNoJSONIsShownAsItIs(t *testing.T) {
	for raw, want := range map[string]string{
		`"`:         `"\""`,
		`"a`:        `"\"a"`,
		` "a" `:     `"a"`,
		`[1,`:       `"[1,"`,
		`{"a"`:      `"{\"a\""`,
		`nul`:       `"nul"`,
		` `:         `null`,
		`null`:      `null`,
		` [ 1 , 2]`: `[1, 2]`,
	} {
		p := &plan.Plan{Changes: []plan.Change{{
			Addr:  schema.Address{Kind: schema.KindJob, Name: "a"},
			Verb:  plan.VerbCreate,
			Attrs: []*plan.AttrChange{{Path: "command", After: json.RawMessage(raw)}},
		}}}
		var b bytes.Buffer
		if err := render.Text(&b, p, render.Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "+ command = "+want+"\n") {
			t.Errorf("%q: want %s in\n%s", raw, want, b.String())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOf(rapid.SampledFrom([]byte("\" []{}:,1nulsead\\\x1b"))).Draw(t, "raw")
		a := plan.AttrChange{Path: "command", Before: raw, After: jsonOf([]string{"a"}), Verb: plan.VerbRestart}
		p := &plan.Plan{Changes: []plan.Change{{Verb: plan.VerbRestart, Attrs: []*plan.AttrChange{&a}}}}
		if text := textOf(t, p, render.Options{}); strings.Contains(text, "\x1b") {
			t.Fatalf("an escape sequence got through: %q", text)
		}
	})
}
