package schema

import (
	"errors"
	"fmt"
	"math"
	"strings"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// versionMismatch checks the required_version of a fray block.
func (e *evaluator) versionMismatch(b *block) *hcl.Diagnostic {
	x := b.attr("required_version")
	if x == nil {
		return nil
	}
	val, diags := x.expr.Value(nil)
	if diags.HasErrors() {
		return errorAt(x.expr.Range(), "Invalid value for required_version", "Write a plain string, such as \"~> 0.1\": it is read before everything else.")
	}
	if val.IsNull() {
		return nil
	}
	if !isPlainString(val) {
		return errorAt(x.expr.Range(), "Invalid value for required_version", "Write a string, such as \"~> 0.1\".")
	}
	constraints, err := goversion.NewConstraint(val.AsString())
	if err != nil {
		return errorAt(x.expr.Range(), "Invalid value for required_version", "Write version constraints, such as \"~> 0.1\" or \">= 0.2, < 1.0\".")
	}
	version, err := goversion.NewVersion(e.opts.Version)
	if err != nil {
		return nil // a build without a version
	}
	if !constraints.Check(version.Core()) {
		return errorAt(x.expr.Range(), "Another version is required", fmt.Sprintf(
			"This configuration requires fray %s, this is %s. Install a version that fits, or change required_version.", val.AsString(), e.opts.Version))
	}
	return nil
}

// settings decodes the fray block. Nothing in it refers to anything else, so
// that where the state is can be known while the rest is wrong.
func (e *evaluator) settings(b *block) Settings {
	s := Settings{Backend: Backend{Kind: BackendLocal, Path: e.absolute(".fray")}}
	if b == nil {
		return s
	}
	s.RequiredVersion = get(e, nil, b.attr("required_version"), asString, "")
	if states := b.blocks["state"]; len(states) > 0 {
		e.onlyOne(states, "The state is kept in one place")
		s.Backend = e.backend(states[0], s.Backend)
	}
	if encryptions := b.blocks["encryption"]; len(encryptions) > 0 {
		e.onlyOne(encryptions, "One encryption holds for the whole state")
		s.Encryption = e.encryption(encryptions[0])
	}
	return s
}

func (e *evaluator) onlyOne(blocks []*block, why string) {
	if len(blocks) > 1 {
		e.errorAt(blocks[1].rng(), "Block stands twice", fmt.Sprintf("%s; it is declared at %s already. Remove one of the two.", why, place(blocks[0].rng())))
	}
}

func (e *evaluator) backend(b *block, fallback Backend) Backend {
	switch BackendKind(b.name) {
	case BackendLocal:
		fallback.Path = e.absolute(get(e, nil, b.attr("path"), notEmpty, ".fray"))
	case BackendGCS:
		gcs := Backend{
			Kind:   BackendGCS,
			Bucket: get(e, nil, b.attr("bucket"), bucketName, ""),
			Prefix: strings.Trim(get(e, nil, b.attr("prefix"), asString, ""), "/"),
			KMSKey: get(e, nil, b.attr("kms_key"), kmsKeyName, ""),
		}
		if !e.opts.Local {
			return gcs
		}
	}
	return fallback
}

func (e *evaluator) encryption(b *block) *Encryption {
	recipients, key := b.attr("recipients"), b.attr("kms_key")
	switch {
	case recipients != nil && key != nil:
		e.errorAt(key.rng, "Two kinds of encryption", "The key of the state is wrapped for recipients or by a KMS key: remove one of the two.")
	case recipients == nil && key == nil:
		e.errorAt(b.rng(), "Empty block", "Say who may read the state: recipients = [\"age1…\"] or kms_key = \"gcp-kms://projects/…\".")
	}
	return &Encryption{
		Recipients: get(e, nil, recipients, stringList, nil),
		KMSKey:     get(e, nil, key, notEmpty, ""),
	}
}

func kmsKeyName(v cty.Value) (string, error) {
	s, err := notEmpty(v)
	if err != nil {
		return s, err
	}
	parts := strings.Split(s, "/")
	for i, word := range []string{"projects", "locations", "keyRings", "cryptoKeys"} {
		if len(parts) != 8 || parts[2*i] != word || parts[2*i+1] == "" {
			return s, errors.New("want the name of a Cloud KMS key: projects/P/locations/L/keyRings/R/cryptoKeys/K")
		}
	}
	return s, nil
}

func bucketName(v cty.Value) (string, error) {
	s, err := notEmpty(v)
	if err == nil && strings.Contains(s, "/") {
		return "", errors.New("want the name of a bucket without gs:// and without a path; the path is the prefix")
	}
	return s, err
}

// impliedProvider is where capacity comes from unless a job says otherwise.
func (s *session) impliedProvider() ProviderName {
	declared := s.root().decls.providers
	if s.opts.Local || len(declared) != 1 {
		return ProviderLocal
	}
	return sortedKeys(declared)[0]
}

// provider decodes a provider attribute.
func (e *evaluator) provider(s scope, x *expression) ProviderName {
	implied := e.implied
	if len(e.handed) == 1 {
		implied = sortedKeys(e.handed)[0] // the only one that the module knows
	}
	asked := get(e, s, x, oneOf(ProviderLocal, ProviderGCP), implied)
	name := e.handedOn(asked)
	if _, known := e.handed[asked]; e.handed != nil && !known && x != nil {
		e.errorAt(x.rng, "Provider not handed in", fmt.Sprintf("The call of this module hands in %s only (%s): add %s = provider.%s to its providers, or leave them out to hand in all.",
			joined(sortedKeys(e.handed)), place(e.callBlock().rng()), asked, asked))
	}
	if e.opts.Local {
		return ProviderLocal
	}
	if name == ProviderGCP && x != nil && e.root().decls.providers[name] == nil {
		e.errorAt(x.rng, "Missing block", "Google Cloud needs a project: add provider \"gcp\" { project = \"…\" } to the files of the stack.")
	}
	return name
}

func joined[S ~string](names []S) string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}

// providers decodes the provider blocks. Those that are used without a block
// are listed too, with no limits.
func (e *evaluator) providers(d *Desired) []Provider {
	used := map[ProviderName]bool{}
	for name := range e.decls.providers {
		used[name] = true
	}
	for i := range d.Jobs {
		used[d.Jobs[i].Resources.Provider] = true
	}
	for i := range d.Reservations {
		used[d.Reservations[i].Provider] = true
	}
	delete(used, "") // of what is wrong
	mapped := used[ProviderGCP] && e.opts.Local
	if mapped {
		delete(used, ProviderGCP)
		used[ProviderLocal] = true
	}
	var providers []Provider
	for _, name := range sortedKeys(used) {
		b := e.decls.providers[name]
		p := Provider{Name: name}
		switch name {
		case ProviderLocal:
			p.CPU = get(e, nil, b.attr("cpu"), asCores, 0)
			p.Memory = get(e, nil, b.attr("memory"), asBytes, 0)
			p.Slices = get(e, nil, b.attr("slices"), wholeNumber(1, math.MaxInt32), 0)
		case ProviderGCP:
			p = e.gcp
		}
		providers = append(providers, p)
	}
	return providers
}

func (e *evaluator) controller() *Controller {
	b := e.decls.controller
	if b == nil {
		return nil
	}
	return &Controller{Provider: e.provider(nil, b.attr("provider"))}
}
