package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/policyfile"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// held are the policies of a file.
func held(t *testing.T, text string) *Policies {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.policy.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, diags := Read(dir, nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return p
}

func ruleOf(condition, message string) string {
	return fmt.Sprintf("policy \"p\" {\n  rule {\n    condition     = %s\n    error_message = %s\n  }\n}\n", condition, message)
}

const secret = "hunter2"

// sampled is a plan with a bit of everything: job.new is created with a secret, job.old was
// replaced after 50 hours, and reservation.pool is deleted.
func sampled(t *testing.T) policy.Input {
	t.Helper()
	key, err := state.NewKey(make([]byte, state.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	job := func(name, tpu string, preemptible bool, env map[string]schema.Text) schema.Job {
		return schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: name}, Namespace: "rl", Command: []schema.Text{schema.Plain("train")},
			Resources:   schema.Resources{Provider: schema.ProviderGCP, TPU: tpu, Slices: 2, Preemptible: preemptible, Zones: []string{"us-east5-a"}},
			Environment: schema.Environment{Env: env}, Labels: map[string]string{"team": "rl"},
		}
	}
	after, err := (schema.Desired{
		Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "acme", Zones: []string{"us-east5-a"}}},
		Jobs: []schema.Job{
			job("new", "v5p-8", false, map[string]schema.Text{"TOKEN": schema.Secret(secret), "LATE": schema.UnknownText(), "STEPS": schema.Plain("3")}),
			job("old", "v5p-16", true, nil),
		},
	}).Seal(key)
	if err != nil {
		t.Fatal(err)
	}
	before := job("old", "v5p-8", true, nil)
	pool := schema.Reservation{Addr: schema.Address{Kind: schema.KindReservation, Name: "pool"}, Provider: schema.ProviderGCP, Min: schema.Capacity{TPU: "v5p-8", Slices: 3}}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	doc := &state.Document{Revision: 7, Desired: schema.Desired{Jobs: []schema.Job{before}, Reservations: []schema.Reservation{pool}}}
	doc.Jobs = map[schema.Address]*state.Job{before.Addr: {
		Spec: &before, Status: schema.JobRunning, AdmittedAt: now.Add(-72 * time.Hour),
		Attempts: []state.Attempt{
			{StartedAt: now.Add(-70 * time.Hour), EndedAt: now.Add(-25 * time.Hour), Outcome: schema.TaskPreempted},
			{StartedAt: now.Add(-5 * time.Hour)},
		},
	}}
	doc.Resources = map[schema.Address]state.Resource{pool.Addr: {Reservation: &pool, Since: now.Add(-time.Hour)}}
	p := &plan.Plan{Next: &state.Document{Desired: after}, Changes: []plan.Change{
		{Addr: after.Jobs[0].Addr, Verb: plan.VerbCreate, Attrs: []*plan.AttrChange{{Path: "environment.env.TOKEN", Sensitive: true, Verb: plan.VerbCreate}}},
		{Addr: before.Addr, Verb: plan.VerbReplace, ActionReason: plan.ReplaceBecauseUpdate, Attrs: []*plan.AttrChange{
			{Path: "resources.tpu", Before: json.RawMessage(`"v5p-8"`), After: json.RawMessage(`"v5p-16"`), Verb: plan.VerbReplace},
			{Path: "stop_grace", Before: json.RawMessage(`"1s"`), After: json.RawMessage(`"1s"`), Verb: plan.VerbNone},
		}},
		{Addr: pool.Addr, Verb: plan.VerbDelete},
	}}
	return policy.InputOf(p, doc, policy.Request{
		Workspace: "prod", Who: policy.Who{User: "ada", Host: "github-actions", CI: "github-actions"}, Time: now,
		Targets: []schema.Address{before.Addr},
	})
}

// Check 19: policies see creations, deletions, replacements, costs, providers, the workspace
// and who plans.
func TestWhatPoliciesSee(t *testing.T) {
	t.Parallel()
	value := Value(sampled(t))
	for _, condition := range []string{
		`plan.counts == { create = 1, update = 0, restart = 0, replace = 1, delete = 1, no-op = 0 }`,
		`[for c in plan.changes : "${c.action} ${c.address}"] == ["create job.new", "replace job.old", "delete reservation.pool"]`,
		`plan.changes[1].before.resources.tpu == "v5p-8" && plan.changes[1].after.resources.tpu == "v5p-16"`,
		`plan.changes[0].before == null && plan.changes[2].after == null && plan.changes[2].before.min.slices == 3`,
		`plan.changes[1].forced_by == ["resources.tpu"] && plan.changes[1].action_reason == "replace_because_cannot_update"`,
		`plan.changes[1].attributes[0] == { path = "resources.tpu", before = "v5p-8", after = "v5p-16", action = "replace", sensitive = false, unknown = false, variables = [] }`,
		`plan.changes[1].status == "running" && plan.changes[1].running_seconds == 5 * 3600 && plan.changes[1].ran_seconds == 50 * 3600 && plan.changes[1].age_seconds == 72 * 3600`,
		`plan.changes[2].age_seconds == 3600 && plan.changes[1].namespace == "rl"`,
		`[for j in plan.jobs : j.address] == ["job.new", "job.old"] && plan.jobs[0].labels.team == "rl" && plan.jobs[0].chips == 8`,
		`plan.total.before.chips == 8 + 12 && plan.total.after.chips == 8 + 16`,
		`plan.total.after.on_demand_chips == 8 && plan.total.after.spot_chips == 16 && plan.by_namespace["rl"].after.chips == 24 && plan.by_namespace[""].after.chips == 0`,
		`plan.total.after.cost_per_hour.low > 0 && plan.total.after.cost_per_hour.high >= plan.total.after.cost_per_hour.low`,
		`abs(plan.total.after.cost_per_month.low - plan.total.after.cost_per_hour.low * 730) < 0.1 && plan.total.after.unknown_prices == 0`,
		`plan.providers == [{ name = "gcp", project = "acme", zones = ["us-east5-a"], address = "" }]`,
		`plan.workspace == "prod" && plan.mode == "apply" && plan.targets == ["job.old"] && plan.revision == 7 && plan.time == "2026-11-26T12:00:00Z"`,
		`plan.who == { name = "ada@github-actions", user = "ada", host = "github-actions", ci = "github-actions" }`,
		`issensitive(plan.jobs[0].environment.env.TOKEN) && !issensitive(plan.jobs[0].environment.env.STEPS) && plan.changes[0].attributes[0].sensitive`,
	} {
		found, diags := held(t, ruleOf(condition, `"no"`)).Findings(value)
		if diags.HasErrors() || len(found) != 1 || len(found[0].Violations) > 0 {
			t.Errorf("%s does not hold: %+v %v", condition, found, diags)
		}
	}
}

// Editors complete the parts that there are, and the page of the plan has a row for each.
func TestPlanParts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/policy-input.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := slices.Sorted(maps.Keys(Value(sampled(t)).AsValueMap()))
	if !slices.Equal(parts, policyfile.PlanParts()) {
		t.Errorf("a plan has %v, and editors complete %v", parts, policyfile.PlanParts())
	}
	of := func(value cty.Value) []string { return slices.Collect(maps.Keys(value.AsValueMap())) }
	first := Value(sampled(t)).GetAttr("changes").AsValueSlice()[0]
	for _, name := range slices.Concat(parts, of(first), of(first.GetAttr("attributes").AsValueSlice()[0]), of(amountValue(policy.Amount{}))) {
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+".") {
			t.Errorf("docs/policy-input.md has no %s", name)
		}
	}
}

// Check 5: no message, no error and no document shows a sensitive value, of the plan or of
// a variable. Check 18: what has no result is broken.
func TestPoliciesShowNoSecret(t *testing.T) {
	t.Parallel()
	value := Value(sampled(t))
	variable := "variable \"token\" {\n  default   = \"" + secret + "\"\n  sensitive = true\n}\n"
	for _, test := range []struct {
		rule   string
		want   string
		broken bool
	}{
		{ruleOf("false", `"it is ${var.token}"`), "is not shown, because it contains a sensitive value", false},
		{ruleOf("false", `"it is ${plan.jobs[0].environment.env.TOKEN}"`), "is not shown, because it contains a sensitive value", false},
		{ruleOf("false", `jsonencode(plan.jobs[0])`), "is not shown, because it contains a sensitive value", false},
		{ruleOf("tonumber(var.token) > 0", `"no"`), "because a sensitive value is part of this expression", true},
		{ruleOf("false", `"${tonumber(var.token)}"`), "because a sensitive value is part of this expression", false},
		{ruleOf("plan.jobs[0].environment.env.TOKEN == \"x\"", `"no"`), "Unknown condition", true},
		{ruleOf("plan.jobs[0].environment.env.LATE == \"x\"", `"no"`), "Unknown condition", true},
		{ruleOf("plan.jobs[9].chips > 0", `"no"`), "Invalid index", true},
		{ruleOf("plan.jobs[0].chip > 0", `"no"`), "Did you mean \"chips\"?", true},
		{ruleOf("\"maybe\"", `"no"`), "true or false", true},
		{ruleOf("local.nothing", `"no"`), "There is no local.nothing", true},
		{strings.Replace(ruleOf("false", `"x ${each.value}"`), "rule {", "rule {\n    for_each = [var.token]", 1), "is not shown, because it contains a sensitive value", false},
		{strings.Replace(ruleOf("false", `"x"`), "rule {", "rule {\n    for_each = toset([var.token])", 1), "Sensitive value", true},
		{strings.Replace(ruleOf("true", `"x"`), "rule {", "description = \"it is ${var.token}\"\n  rule {", 1), "would show a sensitive value", true},
	} {
		p := held(t, variable+test.rule)
		found, diags := p.Findings(value)
		if diags.HasErrors() || len(found) != 1 || len(found[0].Violations) == 0 {
			t.Errorf("%s finds %+v %v", test.rule, found, diags)
			continue
		}
		v := found[0].Violations[0]
		if !strings.Contains(v.Message, test.want) || v.Broken != test.broken {
			t.Errorf("%s finds %+v, want %q, broken %v", test.rule, v, test.want, test.broken)
		}
		if text, err := json.Marshal(found); err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%s shows the secret: %s %v", test.rule, text, err)
		}
		if text := p.Check().Error(); strings.Contains(text, secret) {
			t.Errorf("the check of %s shows the secret: %s", test.rule, text)
		}
	}
	document, err := JSON(value)
	if err != nil || strings.Contains(string(document), secret) || !strings.Contains(string(document), `"sensitive": true`) {
		t.Errorf("the document is %s, %v", document, err)
	}
}

// What is printed of a plan is read back as the same plan.
func TestDocumentIsReadBack(t *testing.T) {
	t.Parallel()
	value := Value(sampled(t))
	data, err := JSON(value)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := ReadValue(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := JSON(read)
	if err != nil || string(again) != string(data) {
		t.Errorf("read back it is %s, %v; want %s", again, err, data)
	}
	if err := os.WriteFile(path, []byte(`{"format_version": "1.6", "changes": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadValue(path); err == nil {
		t.Error("a document of fray plan --json is read as one of fray policy input")
	}
}

// The rules of a file are checked without a plan: against a sample that has all parts.
func TestCheck(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		ruleOf("plan.totl.after.chips < 1", `"no"`):                                                `Did you mean "total"`,
		ruleOf("alltrue([for c in plan.changes : c.actoin == \"x\"])", `"no"`):                     `Did you mean "action"`,
		ruleOf("alltrue([for j in plan.jobs : j.resources.tpus == \"x\"])", `"no"`):                `Did you mean "tpu"`,
		ruleOf("allture([true])", `"no"`):                                                          `There is no function "allture"`,
		ruleOf("plan.total.after.chips < var.max", `"no"`):                                         "max",
		ruleOf("true", `"${plan.who.nmae}"`):                                                       `Did you mean "name"`,
		ruleOf("alltrue([for j in plan.jobs : lookup(j.labels, \"team\", \"\") != \"\"])", `"no"`): "",
		ruleOf("plan.by_namespace[\"rl\"].after.chips < 3", `"no"`):                                "",
		ruleOf("plan.changes[0].before.anything == 1", `"no"`):                                     "",
	} {
		got := held(t, rule).Check().Error()
		if !strings.Contains(got, want) || want == "" && got != "no diagnostics" {
			t.Errorf("%s is reported as %q, want %q", rule, got, want)
		}
	}
}

// Many changes are judged soon, and each violation is found.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	in := sampled(t)
	one := in.Changes[1]
	in.Changes = nil
	for i := range 2000 {
		c := one
		c.Addr.Key = schema.IntKey(i)
		in.Changes = append(in.Changes, c)
	}
	p := held(t, "policy \"p\" {\n  rule {\n    for_each = plan.changes\n    condition     = each.value.action == \"create\"\n    error_message = each.value.address\n  }\n}\n")
	began := time.Now()
	found, diags := p.Findings(Value(in))
	if diags.HasErrors() || len(found[0].Violations) != 2000 {
		t.Fatalf("%d violations, %v", len(found[0].Violations), diags)
	}
	t.Logf("2,000 changes: %s", time.Since(began))
	if v := found[0].Violations[7]; v.Addr.String() != "job.old[7]" {
		t.Errorf("the eighth is about %s", v.Addr)
	}
}

// Two policies of one name, sets that call sets, and directories without policies are errors.
func TestSetsOfDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("org/x.policy.hcl", "variable \"n\" {\n  type = number\n}\n"+ruleOf("plan.total.after.chips <= var.n", `"more than ${var.n}"`))
	write("stack/x.policy.hcl", "locals {\n  n = 3\n}\npolicy_set \"org\" {\n  source = \"../org\"\n  inputs = { n = local.n }\n}\n")
	p, diags := Read(filepath.Join(dir, "stack"), nil)
	if diags.HasErrors() || !slices.Equal(p.Names(), []string{"org.p"}) {
		t.Fatalf("there are %v, %v", p.Names(), diags)
	}
	value, err := Complete(cty.ObjectVal(map[string]cty.Value{"total": cty.ObjectVal(map[string]cty.Value{"after": cty.ObjectVal(map[string]cty.Value{"chips": cty.NumberIntVal(4)})})}))
	if err != nil {
		t.Fatal(err)
	}
	found, diags := p.Findings(value)
	if diags.HasErrors() || len(found[0].Violations) != 1 || found[0].Violations[0].Message != "more than 3" {
		t.Errorf("found %+v %v", found, diags)
	}
	recorded := p.Digests()
	write("stack/more.policy.hcl", strings.Replace(ruleOf("true", `"no"`), `"p"`, `"q"`, 1))
	if p, _ = Read(filepath.Join(dir, "stack"), nil); len(p.Missing(recorded)) > 0 {
		t.Errorf("with one more file, missing are %v", p.Missing(recorded))
	}
	write("org/x.policy.hcl", ruleOf("true", `"no"`))
	if p, _ = Read(filepath.Join(dir, "stack"), nil); !slices.Equal(p.Missing(recorded), []string{"org.x.policy.hcl"}) {
		t.Errorf("after a change, missing are %v", p.Missing(recorded))
	}
	write("twice/x.policy.hcl", strings.Replace(ruleOf("true", `"no"`), `"p"`, `"q"`, 1))
	write("none/readme.md", "")
	for _, dirs := range [][]string{{filepath.Join(dir, "twice")}, {filepath.Join(dir, "none")}, {filepath.Join(dir, "absent")}, {""}} {
		if _, diags := Read(filepath.Join(dir, "stack"), dirs); !diags.HasErrors() {
			t.Errorf("%v is no error", dirs)
		}
	}
}
