package rehearse

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// Load returns the scenario of that name, or the one in the file of that name.
// What is wrong in a file are hcl.Diagnostics, and Source is then set.
func Load(name string) (Scenario, error) {
	if s, ok := BuiltIn(name); ok {
		return s, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		hint := ""
		if near := schema.Nearest(name, Scenarios()); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return Scenario{}, fmt.Errorf("scenario %q is no file, and not one of those that are built in: %s%s", name, strings.Join(Scenarios(), ", "), hint)
	}
	if err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	return Parse(text, name)
}

// Parse reads a scenario from the text of a file. What is wrong are hcl.Diagnostics, and
// Source is then set.
func Parse(text []byte, name string) (Scenario, error) {
	s := Scenario{Name: name}
	var diags hcl.Diagnostics
	if s.Source, diags = hclsyntax.ParseConfig(text, name, hcl.InitialPos); diags.HasErrors() {
		return s, diags
	}
	if s.Cloud, diags = cloud.ParseScenario(text, name); diags.HasErrors() {
		return s, diags
	}
	s.JobEvents = jobEvents(&s.Cloud)
	if s.Workloads, diags = workloads(s.Source.Body); diags.HasErrors() {
		return s, diags
	}
	return s, nil
}

// workloads are the workload blocks of a scenario file, of which the emulator
// takes no notice.
func workloads(body hcl.Body) ([]Workload, hcl.Diagnostics) {
	content, _, diags := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "workload", LabelNames: []string{"job"}}}})
	var found []Workload
	for _, block := range content.Blocks {
		w, more := decodeWorkload(block)
		diags = append(diags, more...)
		if slices.ContainsFunc(found, func(other Workload) bool { return other.Job == w.Job }) {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Workload stated twice", Subject: &block.DefRange,
				Detail: fmt.Sprintf("There is a workload block %q already; put everything into that one.", block.Labels[0]),
			})
		}
		found = append(found, w)
	}
	return found, diags
}

func decodeWorkload(block *hcl.Block) (Workload, hcl.Diagnostics) {
	w := DefaultWorkload()
	if w.Job = block.Labels[0]; w.Job == "*" {
		w.Job = ""
	}
	content, diags := block.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "work"}, {Name: "checkpoint_every"}, {Name: "startup"},
	}})
	for _, each := range []struct {
		name string
		into *time.Duration
	}{{"work", &w.Work}, {"checkpoint_every", &w.CheckpointEvery}, {"startup", &w.Startup}} {
		if attribute, given := content.Attributes[each.name]; given {
			diags = append(diags, decodeDuration(attribute, each.into)...)
		}
	}
	return w, diags
}

func decodeDuration(attribute *hcl.Attribute, into *time.Duration) hcl.Diagnostics {
	value, diags := attribute.Expr.Value(nil)
	if diags.HasErrors() {
		return diags
	}
	wrong := &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Wrong duration", Subject: attribute.Expr.Range().Ptr(),
		Detail: attribute.Name + ` is a time such as "30m" or "40h".`,
	}
	if value.Type() != cty.String || value.IsNull() {
		return hcl.Diagnostics{wrong}
	}
	d, err := time.ParseDuration(value.AsString())
	if err != nil || d < 0 {
		return hcl.Diagnostics{wrong}
	}
	*into = d
	return nil
}
