package policyfile

import (
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/load"
)

// CaseFile is a file of cases of policies.
type CaseFile struct {
	Path  string // as the user knows it
	Cases []*Case

	source *load.Source
}

// Case is a plan, and what policies find in it. One of Plan, PlanFile and Configuration is set.
type Case struct {
	Name  string
	Range hcl.Range

	Plan          cty.Value // NilVal: not written
	PlanFile      string    // a document of fray policy input, absolute; "": none
	Configuration string    // a directory, absolute; "": none
	PlanRange     hcl.Range

	Policies []string // those that are held; nil: all
	Inputs   Inputs
	Denied   Expected
	Warned   Expected
	Messages []Message
}

// Expected are the names of policies that a case expects.
type Expected struct {
	Names []string // sorted
	Range hcl.Range
}

// Message is a text that a message of a policy is expected to have.
type Message struct {
	Policy, Text string
	Range        hcl.Range
}

// CaseType is the root of the table of files of cases.
func CaseType() *language.BlockType {
	return &language.BlockType{
		Name: "the file of cases",
		Blocks: []*language.BlockType{{
			Name: "case", Label: "NAME", Repeated: true, FreeLabel: true,
			Doc: "a plan, and what the policies beside it find in it",
			Attrs: []language.Attribute{
				{Name: "plan", Type: "object", Doc: "what of the plan is not as in an empty one, by the names of docs/policy-input.md"},
				{Name: "plan_file", Type: "string", Doc: "a document that fray policy input wrote"},
				{Name: "configuration", Type: "string", Doc: "a directory with a configuration, which is planned as if nothing was applied yet"},
				{Name: "policies", Type: "list of strings", Default: "all", Doc: "the names of those that are held"},
				{Name: "inputs", Type: "map", Doc: "values of variables: { NAME = VALUE }"},
				{Name: "expect_denied", Type: "list of strings", Default: "none", Doc: "the names of the policies that deny the plan; no others may"},
				{Name: "expect_warned", Type: "list of strings", Default: "none", Doc: "the names of those that warn; no others may"},
			},
			Blocks: []*language.BlockType{{
				Name: "expect_message", Repeated: true, Doc: "a text that a message of a policy has",
				Attrs: []language.Attribute{
					{Name: "policy", Type: "string", Required: true, Doc: "its name"},
					{Name: "text", Type: "string", Required: true, Doc: "part of the message"},
				},
			}},
		}},
	}
}

// ParseCases reads a file of cases, whose policies are in dir. The file is never nil: its
// Files serve the diagnostics.
func ParseCases(path, dir string) (*CaseFile, hcl.Diagnostics) {
	f := &CaseFile{Path: path, source: load.Empty(filepath.Dir(path))}
	found, _, diags := load.Discover(files.Disk{}, path)
	if diags.HasErrors() || len(found) != 1 {
		return f, diags
	}
	r := diagnose.New()
	check := configs.Checker{Report: r}
	root := check.Structure(f.source.ParseFiles(r, found), CaseType(), nil)
	abs, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		r.Add(diagnose.WithoutPlace("Unreadable file", diagnose.Sentence(err.Error())))
	}
	reader := caseReader{evaluator: &evaluator{set: &Set{}, base: &hcl.EvalContext{Functions: funcs.InDirectory(abs)}}, Report: r, dir: abs}
	for _, b := range root.Blocks["case"] {
		f.Cases = append(f.Cases, reader.decode(b))
	}
	if len(f.Cases) == 0 && len(r.Diags) == 0 {
		r.Add(diagnose.WithoutPlace("No tests", fmt.Sprintf("%s has no case block. Write case \"NAME\" { … } with a plan and what is expected of it.", path)))
	}
	return f, r.Sorted()
}

// Files returns what was read, for diagnostics.
func (f *CaseFile) Files() map[string]*hcl.File { return f.source.Files() }

// caseReader decodes cases.
type caseReader struct {
	*evaluator
	*diagnose.Report
	dir string
}

func (r *caseReader) decode(b *configs.Block) *Case {
	c := &Case{Name: b.Name, Range: b.Range(), Plan: cty.NilVal, PlanRange: b.Range(), Inputs: Inputs{}}
	given := 0
	for _, name := range []string{"plan", "plan_file", "configuration"} {
		x := b.Attr(name)
		if x == nil {
			continue
		}
		given++
		c.PlanRange = x.Expr.Range()
		switch name {
		case "plan":
			val, diags := r.value(x)
			r.Extend(diags)
			c.Plan = val
		case "plan_file":
			c.PlanFile = filepath.Join(r.dir, r.word(x))
		case "configuration":
			c.Configuration = filepath.Join(r.dir, r.word(x))
		}
	}
	if given != 1 {
		r.ErrorAt(b.Range(), "Missing attribute", "A case has one of plan, plan_file and configuration.")
	}
	c.Policies = r.list(b.Attr("policies"))
	if x := b.Attr("inputs"); x != nil {
		val, diags := r.value(x)
		r.Extend(diags)
		if plain, _ := val.Unmark(); !diags.HasErrors() && plain.IsKnown() && !plain.IsNull() && (plain.Type().IsObjectType() || plain.Type().IsMapType()) {
			for it := plain.ElementIterator(); it.Next(); {
				name, value := it.Element()
				c.Inputs[name.AsString()] = eval.Assigned{Value: value, Range: x.Expr.Range()}
			}
		} else if !diags.HasErrors() {
			r.ErrorAt(x.Expr.Range(), "Invalid value for inputs", "Write { NAME = VALUE, … } with the variables of the policies.")
		}
	}
	c.Denied, c.Warned = r.expected(b, "expect_denied"), r.expected(b, "expect_warned")
	for _, m := range b.Blocks["expect_message"] {
		if m.Attr("policy") != nil && m.Attr("text") != nil {
			c.Messages = append(c.Messages, Message{Policy: r.word(m.Attr("policy")), Text: r.word(m.Attr("text")), Range: m.Attr("text").Expr.Range()})
		}
	}
	return c
}

func (r *caseReader) expected(b *configs.Block, name string) Expected {
	x := b.Attr(name)
	if x == nil {
		return Expected{Range: b.Range()}
	}
	return Expected{Names: r.list(x), Range: x.Expr.Range()}
}

func (r *caseReader) list(x *configs.Expression) []string {
	words, diags := r.texts(x)
	r.Extend(diags)
	return words
}

// word is an attribute that is a string.
func (r *caseReader) word(x *configs.Expression) string {
	val, diags := r.value(x)
	r.Extend(diags)
	if diags.HasErrors() || !isText(val) {
		r.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, "Want a string.")
		return ""
	}
	return val.AsString()
}
