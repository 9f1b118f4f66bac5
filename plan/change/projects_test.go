package change_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
)

// Changed jobs get the files of their project that changed; others, and those of
// which it is not known, are left as they are.
func TestExplainProjects(t *testing.T) {
	change := func(reason, before, after string, verb plan.Verb) plan.Change {
		return plan.Change{Verb: verb, Reason: reason, Attrs: []*plan.AttrChange{
			{Path: "stop_grace", Before: json.RawMessage(`"1s"`), After: json.RawMessage(`"1s"`), Verb: plan.VerbNone},
			{Path: "environment.bundle", Before: json.RawMessage(before), After: json.RawMessage(after), Verb: verb},
		}}
	}
	p := &plan.Plan{Changes: []plan.Change{
		change("", `"aa"`, `"bb"`, plan.VerbRestart),
		change("asked for by --replace", `"aa"`, `"bb"`, plan.VerbReplace),
		change("", `"aa"`, `"cc"`, plan.VerbRestart),
		change("", `"bb"`, `"bb"`, plan.VerbNone),
		change("", "", `"bb"`, plan.VerbCreate),
		change("", `"many"`, `"bb"`, plan.VerbRestart),
	}}
	pair := plan.BundleChange{Before: "aa", After: "bb"}
	if diff := cmp.Diff([]plan.BundleChange{pair, {Before: "aa", After: "cc"}, {Before: "many", After: "bb"}}, p.BundleChanges()); diff != "" {
		t.Errorf("projects that change (-want +got):\n%s", diff)
	}
	some := []plan.FileChange{{Path: "old.py", Verb: planchange.FileRemoved}, {Path: "src/train.py", Verb: planchange.FileChanged}}
	var many []plan.FileChange
	for i := range 17 {
		many = append(many, plan.FileChange{Path: fmt.Sprintf("f%02d", i), Verb: planchange.FileAdded})
	}
	p.ExplainProjects(map[plan.BundleChange][]plan.FileChange{pair: some, {Before: "many", After: "bb"}: many})
	for i, want := range [][]plan.FileChange{some, some, nil, nil, nil, many} {
		if diff := cmp.Diff(want, p.Changes[i].Attrs[1].Files); diff != "" {
			t.Errorf("change %d: files of the attribute (-want +got):\n%s", i, diff)
		}
	}
}
