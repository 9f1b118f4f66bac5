package lang

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
)

// TestValuesOfAttributes: the closed sets of the table are those that an evaluation accepts.
func TestValuesOfAttributes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path []string // of blocks
		attr string
		text string // with %s where its value stands
	}{
		{[]string{"job"}, "band", `job "a" {
			command = ["x"]
			band    = %s
		}`},
		{[]string{"job", "resources"}, "provider", `job "a" {
			command = ["x"]
			resources { provider = %s }
		}`},
		{[]string{"job", "resources"}, "engine", `job "a" {
			command = ["x"]
			resources { engine = %s }
		}`},
		{[]string{"job", "resources"}, "provisioning", `job "a" {
			command = ["x"]
			resources { provisioning = %s }
		}`},
		{[]string{"reservation"}, "growth", `reservation "a" { growth = %s }`},
		{[]string{"reservation"}, "provider", `reservation "a" { provider = %s }`},
		{[]string{"controller"}, "provider", `controller { provider = %s }`},
		{[]string{"actor_service", "restart"}, "on", `actor_service "a" {
			command = ["x"]
			restart { on = %s }
		}`},
	} {
		t.Run(strings.Join(tt.path, ".")+"."+tt.attr, func(t *testing.T) {
			t.Parallel()
			block := language.Root()
			for _, name := range tt.path {
				block = block.Variants(name)[0]
			}
			values := block.Attr(tt.attr).Values
			if len(values) == 0 {
				t.Fatal("the table has no values")
			}
			_, diags := parseText(t, fmt.Sprintf(tt.text, `"nonsense"`)).Evaluate(eval.Options{})
			if !diags.HasErrors() {
				t.Fatal("nonsense was accepted")
			}
			rejected := ""
			for _, d := range diags {
				if d.Summary == "Invalid value for "+tt.attr {
					rejected = d.Detail
				}
			}
			for _, v := range values {
				if !strings.Contains(rejected, v) {
					t.Errorf("the error does not name %q: %q", v, rejected)
				}
				_, diags := parseText(t, fmt.Sprintf(tt.text, fmt.Sprintf("%q", v))).Evaluate(eval.Options{})
				for _, d := range diags {
					if d.Summary == "Invalid value for "+tt.attr {
						t.Errorf("%q is not accepted: %v", v, d)
					}
				}
			}
		})
	}
}
