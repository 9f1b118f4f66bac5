package policyfile

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/load"
)

// Set are the policies of one directory.
type Set struct {
	Dir      string // absolute
	Policies []*Policy
	Calls    []*Call

	source    *load.Source
	variables []*hclsyntax.Block
	locals    map[string]*configs.Expression
}

// Policy is a policy block.
type Policy struct {
	Name  string
	Range hcl.Range

	block *configs.Block
}

// Call is a policy_set block: policies from elsewhere.
type Call struct {
	Name    string
	Source  string
	Version string
	Range   hcl.Range // of the source

	inputs, policies *configs.Expression
}

// Has reports whether a directory has files of policies.
func Has(dir string) (bool, error) {
	names, err := load.PolicyNames(files.Disk{}, dir, load.PolicyEnding)
	return len(names) > 0, err
}

// Parse reads the *.policy.hcl files of a directory; shown is its name for people. What is
// parsed is never nil: its Files serve the diagnostics.
func Parse(dir, shown string) (*Set, hcl.Diagnostics) {
	s := &Set{Dir: dir, source: load.Empty(dir), locals: map[string]*configs.Expression{}}
	r := diagnose.New()
	names, err := load.PolicyNames(s.source.Disk, dir, load.PolicyEnding)
	if err != nil {
		r.Add(diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("%s: %v. Check the name and its permissions.", shown, err)))
		return s, r.Sorted()
	}
	var found []load.File
	for _, name := range names {
		file, diags := load.ReadFile(s.source.Disk, filepath.Join(shown, name), filepath.Join(dir, name))
		r.Extend(diags)
		if !diags.HasErrors() {
			found = append(found, file)
		}
	}
	s.parse(r, found)
	return s, r.Sorted()
}

func (s *Set) parse(r *diagnose.Report, found []load.File) {
	bodies := s.source.ParseFiles(r, found)
	whole := !r.Sorted().HasErrors() // else a block may lack what its file has
	check := configs.Checker{Report: r}
	root := check.Structure(bodies, Type(), nil)
	check.DeclareNames(root.Blocks[policyBlock], map[string]*configs.Block{})
	check.DeclareNames(root.Blocks[setBlock], map[string]*configs.Block{})
	for _, body := range bodies {
		for _, b := range body.Blocks {
			if b.Type == variableBlock {
				s.variables = append(s.variables, b)
			}
		}
	}
	for _, b := range root.Blocks[localsBlock] {
		for _, name := range slices.Sorted(maps.Keys(b.Attrs)) {
			if x := b.Attrs[name]; s.locals[name] == nil {
				s.locals[name] = x
			} else {
				r.ErrorAt(x.Range, "Declared twice", fmt.Sprintf("local.%s is declared at %s as well: give one of them another name.", name, diagnose.Place(s.locals[name].Range)))
			}
		}
	}
	for _, b := range root.Blocks[policyBlock] {
		if whole && len(b.Blocks[ruleBlock]) == 0 {
			r.ErrorAt(b.Range(), "Policy without a rule", fmt.Sprintf("The policy %q would hold for every plan: write a rule { condition = …, error_message = … } block in it.", b.Name))
		}
		s.Policies = append(s.Policies, &Policy{Name: b.Name, Range: b.Range(), block: b})
	}
	for _, b := range root.Blocks[setBlock] {
		if c := call(r, b); c != nil {
			s.Calls = append(s.Calls, c)
		}
	}
}

// call decodes what of a policy_set block is read before there are values.
func call(r *diagnose.Report, b *configs.Block) *Call {
	c := &Call{Name: b.Name, inputs: b.Attr("inputs"), policies: b.Attr("policies")}
	source := b.Attr("source")
	if source == nil { // reported
		return nil
	}
	c.Range = source.Expr.Range()
	var ok bool
	if c.Source, ok = constantText(r, source); !ok {
		return nil
	}
	if version := b.Attr("version"); version != nil {
		if c.Version, ok = constantText(r, version); !ok {
			return nil
		}
		if load.IsLocalModule(c.Source) {
			r.ErrorAt(version.Range, "Version of a directory", "Only archives have versions: remove it, or name an archive as the source.")
			return nil
		}
	}
	return c
}

func constantText(r *diagnose.Report, x *configs.Expression) (string, bool) {
	val, diags := x.Expr.Value(nil)
	if diags.HasErrors() || !isText(val) || val.AsString() == "" {
		r.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, "Write a plain string: sets are read before there are values to refer to.")
		return "", false
	}
	return val.AsString(), true
}

// Files returns what was read, for diagnostics.
func (s *Set) Files() map[string]*hcl.File { return s.source.Files() }
