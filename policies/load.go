package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/policyfile"
	"github.com/fray-ml/fray/modules"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/terminal"
)

// DirsVariable names directories with policies that hold beside those of every stack, as
// PATH has them.
const DirsVariable = "FRAY_POLICY_DIR"

// Options are the flags about policies.
type Options struct {
	Dirs      []string // besides those of DirsVariable
	Overrides []string // "POLICY=REASON"
}

// Policies are those that hold for the plans of a stack.
type Policies struct {
	sources   []source
	overrides []policy.Override
	terminal  *terminal.Terminal // for what is wrong
}

// source is a set of policies, and how it is used.
type source struct {
	name   string // of the set, "" of files that stand for themselves
	shown  string // for people
	set    *policyfile.Set
	inputs policyfile.Inputs
	only   []string // the policies that hold; nil: all
}

// qualified is the name of a policy of the source.
func (s *source) qualified(name string) string {
	if s.name == "" {
		return name
	}
	return s.name + "." + name
}

// holds reports whether a policy of the set holds.
func (s *source) holds(name string) bool { return s.only == nil || slices.Contains(s.only, name) }

// Load reads the policies beside a stack's files, those of the directories that flags and
// the environment name, and the sets that they call. What is wrong with any of them is
// printed, and no plan is made then.
func Load(a *terminal.Terminal, dir string, opts Options) (*Policies, error) {
	p, diags := Read(dir, append(filepath.SplitList(os.Getenv(DirsVariable)), opts.Dirs...))
	p.terminal = a
	for _, text := range opts.Overrides {
		o, err := policy.ParseOverride(text)
		if err != nil {
			return nil, err
		}
		p.overrides = append(p.overrides, o)
	}
	return p, a.Diagnostics(p.Files(), diags)
}

// LoadDirs is Load for the directories that flags and the environment name alone; nil if there
// are none.
func LoadDirs(a *terminal.Terminal, opts Options) (*Policies, error) {
	dirs := append(filepath.SplitList(os.Getenv(DirsVariable)), opts.Dirs...)
	if len(dirs) == 0 {
		return nil, nil
	}
	p, diags := Read("", dirs)
	p.terminal = a
	return p, a.Diagnostics(p.Files(), diags)
}

// Overridden are the policies with other overrides.
func (p *Policies) Overridden(overrides []policy.Override) *Policies {
	c := *p
	c.overrides = nil
	for _, o := range overrides { // those of other policies are for whom they hold
		if slices.Contains(p.Names(), o.Policy) {
			c.overrides = append(c.overrides, o)
		}
	}
	return &c
}

// Read is Load without the environment and overrides, with what is wrong as diagnostics.
func Read(dir string, dirs []string) (*Policies, hcl.Diagnostics) {
	p := &Policies{}
	r := diagnose.New()
	read := map[string]bool{}
	if abs, err := filepath.Abs(dir); dir == "" {
		// only what is named
	} else if err != nil {
		r.Add(diagnose.WithoutPlace("Unreadable file", diagnose.Sentence(err.Error())))
	} else {
		read[abs] = true
		p.directory(r, abs, shownFrom(abs), false)
	}
	for _, named := range dirs {
		abs, err := filepath.Abs(named)
		switch {
		case err != nil || named == "":
			r.Add(diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("%q is no directory of policies.", named)))
		case !read[abs]:
			read[abs] = true
			p.directory(r, abs, named, true)
		}
	}
	p.distinct(r)
	return p, r.Sorted()
}

// shownFrom is a directory as people name it from here.
func shownFrom(abs string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, abs); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return abs
}

// directory adds the policies of a directory and the sets that it calls.
func (p *Policies) directory(r *diagnose.Report, abs, shown string, required bool) {
	set, diags := policyfile.Parse(abs, shown)
	own := source{shown: shown, set: set}
	p.sources = append(p.sources, own) // with its files, which diagnostics show
	r.Extend(diags)
	if diags.HasErrors() {
		return
	}
	if required && len(set.Policies)+len(set.Calls) == 0 {
		r.Add(diagnose.WithoutPlace("No policies", fmt.Sprintf("%s has no policy in a *%s file, and is named as a directory of policies. Name the right one, so that no plan goes unchecked.", shown, load.PolicyEnding)))
		return
	}
	installed := &modules.Installed{}
	for _, c := range set.Calls {
		p.call(r, &own, c, installed)
	}
}

// call adds the set that a policy_set block names.
func (p *Policies) call(r *diagnose.Report, from *source, c *policyfile.Call, installed load.Installer) {
	s := source{name: c.Name, shown: c.Source}
	if c.Version != "" {
		s.shown += " " + c.Version
	}
	dir := filepath.Join(from.set.Dir, c.Source)
	shown := filepath.Join(from.shown, c.Source)
	switch {
	case filepath.IsAbs(c.Source):
		dir, shown = filepath.Clean(c.Source), c.Source
	case !load.IsLocalModule(c.Source):
		found, err := installed.Installed(from.set.Dir, c.Source, c.Version)
		if err != nil {
			r.ErrorAt(c.Range, "Module is not installed", diagnose.Sentence(err.Error()))
			return
		}
		dir, shown = found.Dir, found.Dir
	}
	set, diags := policyfile.Parse(dir, shown)
	s.set = set
	p.sources = append(p.sources, s)
	r.Extend(diags)
	if diags.HasErrors() {
		return
	}
	at := &p.sources[len(p.sources)-1]
	if len(set.Policies) == 0 {
		r.ErrorAt(c.Range, "No policies", fmt.Sprintf("%s has no policy in a *%s file.", shown, load.PolicyEnding))
	}
	for _, inner := range set.Calls {
		r.ErrorAt(inner.Range, "Set calls a set", "Name this set in the files that call the other one.")
	}
	var more hcl.Diagnostics
	at.inputs, at.only, more = from.set.CallOf(c, from.inputs)
	r.Extend(more)
	for _, name := range at.only {
		if !slices.ContainsFunc(set.Policies, func(one *policyfile.Policy) bool { return one.Name == name }) {
			r.ErrorAt(c.Range, "No such policy", fmt.Sprintf("%s has no policy %q. %s", c.Source, name, diagnose.DidYouMean(name, namesOf(set))))
		}
	}
}

func namesOf(set *policyfile.Set) []string {
	var names []string
	for _, p := range set.Policies {
		names = append(names, p.Name)
	}
	return names
}

// distinct reports names that stand for several policies: an override would name them all.
func (p *Policies) distinct(r *diagnose.Report) {
	first := map[string]hcl.Range{}
	for i := range p.sources {
		s := &p.sources[i]
		for _, one := range s.set.Policies {
			name := s.qualified(one.Name)
			if at, twice := first[name]; twice {
				r.ErrorAt(one.Range, "Declared twice", fmt.Sprintf("There is a policy %s at %s, too: give one of them another name.", name, diagnose.Place(at)))
				continue
			}
			first[name] = one.Range
		}
	}
}

// Files are what was read, for diagnostics.
func (p *Policies) Files() map[string]*hcl.File {
	all := map[string]*hcl.File{}
	for i := range p.sources {
		maps.Copy(all, p.sources[i].set.Files())
	}
	return all
}

// Digests are the SHA-256 of the files, by the name of their set and their own.
func (p *Policies) Digests() map[string]string {
	if p == nil {
		return nil
	}
	all := map[string]string{}
	for i := range p.sources {
		for path, file := range p.sources[i].set.Files() {
			sum := sha256.Sum256(file.Bytes)
			all[p.sources[i].qualified(filepath.Base(path))+" "+hex.EncodeToString(sum[:4])] = hex.EncodeToString(sum[:])
		}
	}
	return all
}

// Missing are the files of recorded digests that do not hold any more, sorted; more files
// than before may hold.
func (p *Policies) Missing(recorded map[string]string) []string {
	now := p.Digests()
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if now[name] != recorded[name] {
			name, _, _ = strings.Cut(name, " ")
			missing = append(missing, name)
		}
	}
	return missing
}
