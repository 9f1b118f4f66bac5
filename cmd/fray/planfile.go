package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// planFormat is the version of saved plans; other versions are refused.
const planFormat = "fray-plan/1"

// savedPlan is a plan to be applied as it was reviewed: what was desired, and
// what it was compared with.
type savedPlan struct {
	Format      string `json:"format"`
	FrayVersion string `json:"fray_version"`
	// What must still hold when it is applied.
	Lineage      string `json:"lineage"`
	Serial       uint64 `json:"serial"`
	ConfigDigest string `json:"config_digest"`
	// Where the files and the state are.
	Paths   []string       `json:"paths"` // absolute
	Backend schema.Backend `json:"backend"`
	Flags   savedFlags     `json:"flags"`

	Desired schema.Desired    `json:"desired"`
	Replace []schema.Address  `json:"replace,omitempty"`
	Targets []schema.Address  `json:"targets,omitempty"`
	Bundles map[string]string `json:"bundles,omitempty"` // project directory by sha256
	Changes []plan.Change     `json:"changes"`
}

// savedFlags are the inputs that values known only after apply need for
// evaluating the files again. Variables may be secret, so they are sealed.
type savedFlags struct {
	Vars     []schema.Text `json:"vars,omitempty"`
	VarFiles []string      `json:"var_files,omitempty"`
	Local    bool          `json:"local,omitempty"`
}

func savePlan(path string, l *loaded, c *change, p *plan.Plan) error {
	saved := savedPlan{
		Format: planFormat, FrayVersion: toolVersion(),
		Lineage: l.doc.Lineage, Serial: l.doc.Serial, ConfigDigest: l.src.Digest(),
		Backend: l.cfg.Settings.Backend,
		Flags:   savedFlags{VarFiles: l.opts.VarFiles, Local: l.opts.Local},
		Desired: c.desired(l.doc), Replace: c.replace, Targets: c.targets,
		Bundles: l.bundles,
	}
	for _, v := range l.opts.Vars {
		t, err := schema.Secret(v).Seal(l.sealer)
		if err != nil {
			return err
		}
		saved.Flags.Vars = append(saved.Flags.Vars, t)
	}
	for _, path := range l.paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("save plan: %w", err)
		}
		saved.Paths = append(saved.Paths, abs)
	}
	for _, ch := range p.Changes {
		if ch.Verb != plan.VerbNone {
			saved.Changes = append(saved.Changes, ch)
		}
	}
	data, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces a file by way of a temporary one beside it.
func writeFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readPlan reads a saved plan.
func readPlan(path string) (*savedPlan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	var saved savedPlan
	if err := json.Unmarshal(data, &saved); err != nil || saved.Format == "" {
		return nil, fmt.Errorf("read plan: %s is not a saved plan; make one with fray plan --out=%s", path, shellWord(path))
	}
	if saved.Format != planFormat {
		return nil, fmt.Errorf("read plan: %s has format %s, this fray reads %s; make a new one with fray plan --out=%s", path, saved.Format, planFormat, shellWord(path))
	}
	return &saved, nil
}

// isPlanFile reports whether apply's only argument is a saved plan rather than
// a configuration.
func isPlanFile(args []string) bool {
	if len(args) != 1 {
		return false
	}
	info, err := os.Stat(args[0])
	return err == nil && info.Mode().IsRegular() && filepath.Ext(args[0]) != ".hcl"
}

// open finds the files and the stack of a saved plan again, and refuses if
// either has moved on since.
func (sp *savedPlan) open(a *app, path string) (*loaded, *change, error) {
	src, diags := schema.Parse(sp.Paths)
	if err := a.diagnostics(filesOf(src), diags); err != nil {
		return nil, nil, err
	}
	again := fmt.Sprintf("; make a new plan with fray plan --out=%s", shellWord(path))
	if sp.FrayVersion != toolVersion() {
		return nil, nil, fmt.Errorf("%s was made by fray %s and this is %s%s", path, sp.FrayVersion, toolVersion(), again)
	}
	if src.Digest() != sp.ConfigDigest {
		return nil, nil, fmt.Errorf("%s is stale: the files in %s changed since it was made%s", path, src.Dir(), again)
	}
	st, err := openStack(src.Dir(), sp.Backend, sp.Serial == 0)
	if err != nil {
		return nil, nil, err
	}
	if st.fresh {
		return nil, nil, fmt.Errorf("%s is stale: the state it was made for (serial %d) is not in %s any more%s", path, sp.Serial, st.root, again)
	}
	l := &loaded{src: src, stack: st, desired: sp.Desired, bundles: sp.Bundles, paths: sp.Paths}
	if l.sealer, err = st.sealer(true); err != nil {
		return nil, nil, err
	}
	l.opts = schema.Options{VarFiles: sp.Flags.VarFiles, Environ: os.Environ(), Local: sp.Flags.Local, Version: toolVersion()}
	for _, v := range sp.Flags.Vars {
		plain, err := v.Reveal(l.sealer)
		if err != nil {
			return nil, nil, fmt.Errorf("open %s: %w%s", path, err, again)
		}
		l.opts.Vars = append(l.opts.Vars, plain)
	}
	if l.cfg, diags = src.Evaluate(l.opts); diags.HasErrors() {
		return nil, nil, a.diagnostics(src.Files(), diags)
	}
	desired := func(*state.Document) schema.Desired { return sp.Desired }
	return l, &change{targets: sp.Targets, replace: sp.Replace, desired: desired}, nil
}

// fresh reports whether the state is still what the plan was made for.
func (sp *savedPlan) check(path, lineage string, serial uint64, s store.Store) error {
	if sp.Serial == serial && (sp.Lineage == lineage || serial == 0) {
		return nil
	}
	found := fmt.Sprintf("serial %d", serial)
	if sp.Lineage != lineage {
		found = "of another lineage"
	}
	return fmt.Errorf("%s is stale: it was made for the state in %s at serial %d, which is now %s; make a new plan with fray plan --out=%s",
		path, s.Location(), sp.Serial, found, shellWord(path))
}
