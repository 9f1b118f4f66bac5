package change

import (
	"encoding/json"
	"testing"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

func TestOutputChanges(t *testing.T) {
	known := func(v string) schema.Output { return schema.Output{Value: json.RawMessage(v)} }
	for name, c := range map[string]struct {
		before, after map[string]schema.Output
		want          plan.Verb
	}{
		"new":               {nil, map[string]schema.Output{"o": known("1")}, plan.VerbCreate},
		"gone":              {map[string]schema.Output{"o": known("1")}, nil, plan.VerbDelete},
		"same":              {map[string]schema.Output{"o": known(`{"a": 1}`)}, map[string]schema.Output{"o": known(`{"a":1}`)}, plan.VerbNone},
		"same, escaped":     {map[string]schema.Output{"o": known(`"\u003c"`)}, map[string]schema.Output{"o": known(`"<"`)}, plan.VerbNone},
		"other":             {map[string]schema.Output{"o": known("1")}, map[string]schema.Output{"o": known("2")}, plan.VerbUpdate},
		"large numbers":     {map[string]schema.Output{"o": known("9007199254740993")}, map[string]schema.Output{"o": known("9007199254740992")}, plan.VerbUpdate},
		"becomes known":     {map[string]schema.Output{"o": {Unknown: true}}, map[string]schema.Output{"o": known("1")}, plan.VerbUpdate},
		"still not known":   {map[string]schema.Output{"o": {Unknown: true}}, map[string]schema.Output{"o": {Unknown: true}}, plan.VerbNone},
		"is not known":      {map[string]schema.Output{"o": known("1")}, map[string]schema.Output{"o": {Unknown: true}}, plan.VerbUpdate},
		"null":              {map[string]schema.Output{"o": known("null")}, map[string]schema.Output{"o": known("null")}, plan.VerbNone},
		"becomes sensitive": {map[string]schema.Output{"o": known("1")}, map[string]schema.Output{"o": {Sensitive: true}}, plan.VerbUpdate},
		"described":         {map[string]schema.Output{"o": known("1")}, map[string]schema.Output{"o": {Value: json.RawMessage("1"), Description: "d"}}, plan.VerbNone},
	} {
		t.Run(name, func(t *testing.T) {
			got := OutputChanges(c.before, c.after)
			if len(got) != 1 || got[0].Verb != c.want {
				t.Fatalf("got %+v, want %s", got, c.want)
			}
			if got[0].Sensitive && len(got[0].Before)+len(got[0].After) > 0 {
				t.Errorf("got %s -> %s of a sensitive output", got[0].Before, got[0].After)
			}
			if p := (&plan.Plan{Outputs: got}); p.Empty() != (c.want == plan.VerbNone) {
				t.Errorf("Empty() = %v with %s", p.Empty(), c.want)
			}
		})
	}
}
