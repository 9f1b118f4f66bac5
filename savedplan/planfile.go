package savedplan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/checksum"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/terminal"
)

// planFormat is the version of saved plans; other versions are rejected.
const planFormat = "fray-plan/2"

// Plan is a plan to be applied as it was reviewed: what was desired, and
// what it was compared with.
type Plan struct {
	Format      string `json:"format"`
	FrayVersion string `json:"fray_version"`
	// What must still hold when it is applied.
	Lineage      string                   `json:"lineage"`
	Serial       uint64                   `json:"serial"`
	Revision     uint64                   `json:"revision"`
	Base         map[schema.Address]basis `json:"base,omitempty"` // what it is compared with, in short
	ConfigDigest string                   `json:"config_digest"`
	Files        map[string]string        `json:"files"` // SHA-256 by name
	origin

	Mode    plan.Mode           `json:"mode,omitempty"`
	Desired schema.Desired      `json:"desired"`
	Replace []schema.Address    `json:"replace,omitempty"`
	Targets []schema.Address    `json:"targets,omitempty"`
	Bundles map[string]string   `json:"bundles,omitempty"` // project directory by sha256
	Changes []plan.Change       `json:"changes"`
	Outputs []plan.OutputChange `json:"outputs,omitempty"`
	Shown   shownBesides        `json:"shown"`

	Amendments []plan.Amendment `json:"amendments,omitempty"`
	// Policies are the SHA-256 of the files of the policies that held for it, by name.
	Policies map[string]string `json:"policies,omitempty"`
}

// origin is where the files and the state of a plan are.
type origin struct {
	Paths     []string        `json:"paths"`         // absolute
	Dir       string          `json:"dir,omitempty"` // of the configuration, of a plan that reads no files
	Settings  schema.Settings `json:"settings"`
	Workspace string          `json:"workspace"`
	Flags     savedFlags      `json:"flags"`
}

// savedFlags are the inputs that values known only after apply need for
// evaluating the files again. Variables may be secret, so they are sealed.
type savedFlags struct {
	Given   []savedGiven  `json:"given,omitempty"`
	Environ []schema.Text `json:"environ,omitempty"` // FRAY_VAR_name=value
	Local   bool          `json:"local,omitempty"`
	Planned time.Time     `json:"planned,omitzero"` // what plantimestamp returned
	// Ephemeral are the variables whose values are to be given again.
	Ephemeral []string `json:"ephemeral,omitempty"`
}

type savedGiven struct {
	Kind eval.GivenKind `json:"kind"`
	Text schema.Text    `json:"text"`
}

// saveFlags seals the values of variables, but for those that must not be kept;
// the paths of their files become absolute.
func saveFlags(opts eval.Options, ephemeral []string, sealer schema.Sealer) (savedFlags, error) {
	saved := savedFlags{Local: opts.Local, Planned: opts.Moment.Planned, Ephemeral: ephemeral}
	for _, g := range opts.Given {
		if g.IsOf(ephemeral) {
			continue
		}
		if g.Kind == eval.GivenVarFile {
			path, err := filepath.Abs(g.Text)
			if err != nil {
				return saved, err
			}
			saved.Given = append(saved.Given, savedGiven{g.Kind, schema.Plain(path)})
			continue
		}
		text, err := schema.Secret(g.Text).Seal(sealer)
		if err != nil {
			return saved, err
		}
		saved.Given = append(saved.Given, savedGiven{g.Kind, text})
	}
	for _, entry := range opts.Environ {
		if !strings.HasPrefix(entry, eval.VariablePrefix) || isOfEnviron(entry, ephemeral) {
			continue
		}
		text, err := schema.Secret(entry).Seal(sealer)
		if err != nil {
			return saved, err
		}
		saved.Environ = append(saved.Environ, text)
	}
	return saved, nil
}

// options are those that the plan was made with, and what is given of variables
// that are not kept.
func (sp *Plan) options(sealer schema.Sealer, given []eval.Given) (eval.Options, error) {
	opts := eval.Options{Local: sp.Flags.Local, Workspace: sp.Workspace, Version: release.Version()}
	opts.Moment.Planned = sp.Flags.Planned
	for _, g := range sp.Flags.Given {
		text, err := g.Text.Reveal(sealer)
		if err != nil {
			return opts, err
		}
		opts.Given = append(opts.Given, eval.Given{Kind: g.Kind, Text: text})
	}
	for _, entry := range sp.Flags.Environ {
		text, err := entry.Reveal(sealer)
		if err != nil {
			return opts, err
		}
		opts.Environ = append(opts.Environ, text)
	}
	for _, entry := range os.Environ() {
		if isOfEnviron(entry, sp.Flags.Ephemeral) {
			opts.Environ = append(opts.Environ, entry)
		}
	}
	opts.Given = append(opts.Given, given...)
	return opts, nil
}

// isOfEnviron reports whether an entry of the environment gives one of some
// variables a value.
func isOfEnviron(entry string, variables []string) bool {
	name, _, _ := strings.Cut(entry, "=")
	name, ok := strings.CutPrefix(name, eval.VariablePrefix)
	return ok && slices.Contains(variables, name)
}

// Save writes a plan to a file, with what it was made from.
func Save(ctx context.Context, path string, l *configuration.Loaded, c *proposal.Change, p *plan.Plan) error {
	saved := Plan{
		Format: planFormat, FrayVersion: release.Version(), Mode: c.Mode,
		Lineage: l.Document.Lineage, Serial: l.Document.Serial, Revision: l.Document.Revision, Base: basesOf(l.Document),
		origin:  origin{Settings: l.Site.Settings, Workspace: l.Stack.Workspace},
		Desired: p.Next.Desired, Replace: c.Replace, Targets: c.Targets,
		Bundles: l.Bundles, Outputs: p.Outputs, Amendments: p.Amendments, Shown: besidesOf(l, p), Policies: c.Policies.Digests(),
	}
	if err := saved.setOrigin(l, c); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	for _, path := range l.Paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("save plan: %w", err)
		}
		saved.Paths = append(saved.Paths, abs)
	}
	for _, ch := range p.Changes {
		if ch.Verb != plan.VerbNone || ch.Reason != "" {
			saved.Changes = append(saved.Changes, ch)
		}
	}
	data, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	if data, err = checksum.Append(data); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	if data, err = sealPlan(ctx, l.Stack.Keys, data); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return durable.Replace(path, data, 0o600)
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
func sealPlan(ctx context.Context, k *stack.Keys, data []byte) ([]byte, error) {
	encrypts, err := k.Encrypts(ctx)
	if err != nil || !encrypts {
		return data, err
	}
	box, err := k.Seal(ctx, keyring.KindPlan, data)
	if err != nil {
		return nil, err
	}
	ring, err := k.Ring.Encode()
	if err != nil {
		return nil, err
	}
	sealed, err := json.Marshal(sealedPlan{Format: sealedPlanFormat, Key: ring, Plan: box})
	return append(sealed, '\n'), err
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
	secret, err := stack.OpenRing(ctx, ring)
	if err != nil {
		return nil, err
	}
	box, err := ring.BoxOf(secret)
	if err != nil {
		return nil, err
	}
	return box.Open(keyring.KindPlan, sealed.Plan)
}

// Read reads a saved plan.
func Read(ctx context.Context, path string) (*Plan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if data, err = unsealPlan(ctx, data); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	saved, err := decodePlan(data)
	if err != nil {
		return nil, fmt.Errorf("read plan: %s %w; make a new one with fray plan --out=%s", path, err, terminal.ShellQuote(path))
	}
	return saved, nil
}

// decodePlan rejects whole what is not as it was saved: the error states what the
// file is or has.
func decodePlan(data []byte) (*Plan, error) {
	object, standing := checksum.Cut(data)
	var head struct {
		Format string `json:"format"`
	}
	damaged := fmt.Errorf("%w: it is not what was saved, since its checksum is of another content", errPlanDamaged)
	switch err := json.Unmarshal(object, &head); {
	case standing == checksum.Wrong:
		return nil, damaged
	case err != nil || head.Format == "":
		return nil, errors.New("is not a saved plan")
	case head.Format != planFormat:
		return nil, fmt.Errorf("has format %s, this fray reads %s", head.Format, planFormat)
	case standing == checksum.Missing:
		return nil, damaged
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	var saved Plan
	if err := d.Decode(&saved); err != nil {
		return nil, fmt.Errorf("%w: %w", errPlanDamaged, err)
	}
	for i := range saved.Changes {
		if slices.Contains(saved.Changes[i].Attrs, nil) {
			return nil, fmt.Errorf("%w: the change of %s has an attribute without content", errPlanDamaged, saved.Changes[i].Addr)
		}
	}
	return &saved, nil
}

// errPlanDamaged: nothing of such a plan is used.
var errPlanDamaged = errors.New("is damaged")

// IsFile reports whether apply's only argument is a saved plan rather than
// a configuration.
func IsFile(args []string) bool {
	if len(args) != 1 {
		return false
	}
	info, err := os.Stat(args[0])
	return err == nil && info.Mode().IsRegular() && filepath.Ext(args[0]) != ".hcl"
}

// Open finds the files and the stack of a saved plan again, and fails if
// either has moved on since.
func (sp *Plan) Open(ctx context.Context, a *terminal.Terminal, path string, flags configuration.Options) (*configuration.Loaded, *proposal.Change, error) {
	if sp.Mode != plan.ModeApply {
		return sp.openState(ctx, path, flags)
	}
	recorder, src, diags := configuration.ParseRecorded(sp.Paths)
	if err := a.Diagnostics(terminal.FilesOf(src), diags); err != nil {
		return nil, nil, err
	}
	again := sp.again(path)
	for _, g := range flags.Given {
		if !g.IsOf(sp.Flags.Ephemeral) {
			return nil, nil, fmt.Errorf("%s has the values of its variables%s, and only ephemeral ones are given here", path, again)
		}
	}
	if err := sp.checkVersion(path); err != nil {
		return nil, nil, err
	}
	if src.Digest() != sp.ConfigDigest {
		return nil, nil, fmt.Errorf("%s %w: the files in %s changed since it was made (%s)%s", path, errStale, src.Dir(), movedFiles(sp.Files, fileDigests(src)), again)
	}
	where, st, err := sp.openStack(ctx, path, src.Dir(), flags.Workspace)
	if err != nil {
		return nil, nil, err
	}
	l := &configuration.Loaded{Source: src, Recorder: recorder, Stack: st, Desired: sp.Desired, Bundles: sp.Bundles, Paths: sp.Paths}
	doc, err := st.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.Document = doc
	if l.Sealer, err = st.Sealer(ctx, doc, true); err != nil {
		return nil, nil, err
	}
	if l.Options, err = sp.options(l.Sealer, flags.Given); err != nil {
		return nil, nil, fmt.Errorf("open %s: %w%s", path, err, again)
	}
	l.Options.Data = configuration.NewReader(ctx, src, where, sp.Flags.Local)
	if l.Config, diags = src.Evaluate(l.Options); diags.HasErrors() {
		return nil, nil, a.Diagnostics(src.Files(), diags)
	}
	if l.Config.Waits() {
		l.Options.Computed = l.Moved(doc).Computed()
		if l.Config, diags = src.Evaluate(l.Options); diags.HasErrors() {
			return nil, nil, a.Diagnostics(src.Files(), diags)
		}
	}
	desired := func(*state.Document) schema.Desired { return sp.Desired }
	c := &proposal.Change{Targets: sp.Targets, Replace: sp.Replace, Desired: desired}
	c.Amender = proposal.NewAmender(l, a, c)
	c.Amender.Expected = func(found []plan.Amendment) error {
		if err := proposal.SameAmendments(found, sp.Amendments); err != nil {
			return fmt.Errorf("%s %w: %w%s", path, errStale, err, again)
		}
		return nil
	}
	return l, c, nil
}
