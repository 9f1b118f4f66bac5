package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
)

// planFormat is the version of saved plans; other versions are refused.
const planFormat = "fray-plan/1"

// savedPlan is a plan to be applied as it was reviewed: what was desired, and
// what it was compared with.
type savedPlan struct {
	Format      string `json:"format"`
	FrayVersion string `json:"fray_version"`
	// What must still hold when it is applied.
	Lineage      string                   `json:"lineage"`
	Serial       uint64                   `json:"serial"`
	Revision     uint64                   `json:"revision"`
	Base         map[schema.Address]basis `json:"base,omitempty"` // what it is compared with, in short
	ConfigDigest string                   `json:"config_digest"`
	Files        map[string]string        `json:"files"` // SHA-256 by name
	// Where the files and the state are.
	Paths    []string        `json:"paths"` // absolute
	Settings schema.Settings `json:"settings"`
	Flags    savedFlags      `json:"flags"`

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

func savePlan(ctx context.Context, path string, l *loaded, c *change, p *plan.Plan) error {
	saved := savedPlan{
		Format: planFormat, FrayVersion: toolVersion(),
		Lineage: l.doc.Lineage, Serial: l.doc.Serial, Revision: l.doc.Revision, Base: basesOf(l.doc),
		ConfigDigest: l.src.Digest(), Files: fileDigests(l.src),
		Settings: l.cfg.Settings,
		Flags:    savedFlags{VarFiles: l.opts.VarFiles, Local: l.opts.Local},
		Desired:  c.desired(l.doc), Replace: c.replace, Targets: c.targets,
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
	if data, err = l.stack.keys.sealPlan(ctx, data); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return writeFile(path, append(data, '\n'))
}

// sealedPlan is an encrypted plan. It brings the stack's key along, wrapped, so
// that who may read the state may apply it without knowing where that is.
type sealedPlan struct {
	Format string          `json:"format"`
	Key    json.RawMessage `json:"key"`
	Plan   json.RawMessage `json:"plan"`
}

const sealedPlanFormat = "fray-plan-encrypted/1"

// sealPlan encrypts a plan if the state is encrypted.
func (k *keys) sealPlan(ctx context.Context, data []byte) ([]byte, error) {
	encrypts, err := k.encrypts(ctx)
	if err != nil || !encrypts {
		return data, err
	}
	box, err := k.seal(ctx, keyring.KindPlan, data)
	if err != nil {
		return nil, err
	}
	ring, err := k.ring.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealedPlan{Format: sealedPlanFormat, Key: ring, Plan: box})
}

// unsealPlan decrypts a plan that is encrypted.
func unsealPlan(ctx context.Context, data []byte) ([]byte, error) {
	var sealed sealedPlan
	if err := json.Unmarshal(data, &sealed); err != nil || sealed.Format != sealedPlanFormat {
		return data, nil // for the reader of plans to judge
	}
	ring, err := keyring.Parse(sealed.Key)
	if err != nil {
		return nil, err
	}
	secret, err := openRing(ctx, ring)
	if err != nil {
		return nil, err
	}
	box, err := ring.Box(secret)
	if err != nil {
		return nil, err
	}
	return box.Open(keyring.KindPlan, sealed.Plan)
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
func readPlan(ctx context.Context, path string) (*savedPlan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if data, err = unsealPlan(ctx, data); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", path, err)
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
func (sp *savedPlan) open(ctx context.Context, a *app, path string) (*loaded, *change, error) {
	src, diags := schema.Parse(sp.Paths)
	if err := a.diagnostics(filesOf(src), diags); err != nil {
		return nil, nil, err
	}
	again := fmt.Sprintf("; make a new plan with fray plan --out=%s", shellWord(path))
	if sp.FrayVersion != toolVersion() {
		return nil, nil, fmt.Errorf("%s was made by fray %s and this is %s%s", path, sp.FrayVersion, toolVersion(), again)
	}
	if src.Digest() != sp.ConfigDigest {
		return nil, nil, fmt.Errorf("%s is stale: the files in %s changed since it was made (%s)%s", path, src.Dir(), movedFiles(sp.Files, fileDigests(src)), again)
	}
	st, err := openStack(ctx, src.Dir(), sp.Settings, sp.Serial == 0)
	if err != nil {
		return nil, nil, err
	}
	if st.fresh {
		return nil, nil, fmt.Errorf("%s is stale: the state it was made for (serial %d) is not in %s any more%s", path, sp.Serial, st.at, again)
	}
	l := &loaded{src: src, stack: st, desired: sp.Desired, bundles: sp.Bundles, paths: sp.Paths}
	doc, err := st.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	if l.sealer, err = st.sealer(ctx, doc, true); err != nil {
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
