package decode

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// Settings decodes the fray block. Nothing in it refers to anything else, so
// that where the state is can be known while the rest is wrong.
func (e *Decoder) Settings(b *configs.Block) schema.Settings {
	s := schema.Settings{Backend: schema.Backend{Kind: schema.BackendLocal, Path: e.Absolute(".fray")}}
	if b == nil {
		return s
	}
	s.RequiredVersion = eval.Get(e, nil, b.Attr("required_version"), as.String, "")
	if states := b.Blocks["state"]; len(states) > 0 {
		onlyOne(e.Reporter, states, "The state is kept in one place")
		s.Backend = backend(e.Evaluator, states[0], s.Backend)
	}
	if encryptions := b.Blocks["encryption"]; len(encryptions) > 0 {
		onlyOne(e.Reporter, encryptions, "One encryption holds for the whole state")
		s.Encryption = encryption(e.Evaluator, encryptions[0])
	}
	return s
}

func onlyOne(r eval.Reporter, blocks []*configs.Block, why string) {
	if len(blocks) > 1 {
		r.ErrorAt(blocks[1].Range(), "Block stands twice", fmt.Sprintf("%s; it is declared at %s already. Remove one of the two.", why, diagnose.Place(blocks[0].Range())))
	}
}

func backend(e *eval.Evaluator, b *configs.Block, fallback schema.Backend) schema.Backend {
	switch schema.BackendKind(b.Name) {
	case schema.BackendLocal:
		fallback.Path = e.Absolute(eval.Get(e, nil, b.Attr("path"), as.NotEmpty, ".fray"))
	case schema.BackendGCS:
		gcs := schema.Backend{
			Kind:   schema.BackendGCS,
			Bucket: eval.Get(e, nil, b.Attr("bucket"), eval.BucketName, ""),
			Prefix: strings.Trim(eval.Get(e, nil, b.Attr("prefix"), as.String, ""), "/"),
			KMSKey: eval.Get(e, nil, b.Attr("kms_key"), kmsKeyName, ""),
		}
		if !e.Options.Local {
			return gcs
		}
	}
	return fallback
}

func encryption(e *eval.Evaluator, b *configs.Block) *schema.Encryption {
	recipients, key := b.Attr("recipients"), b.Attr("kms_key")
	switch {
	case recipients != nil && key != nil:
		e.ErrorAt(key.Range, "Two kinds of encryption", "The key of the state is wrapped for recipients or by a KMS key: remove one of the two.")
	case recipients == nil && key == nil:
		e.ErrorAt(b.Range(), "Empty block", "List who may read the state: recipients = [\"age1…\"] or kms_key = \"gcp-kms://projects/…\".")
	}
	return &schema.Encryption{
		Recipients: eval.Get(e, nil, recipients, as.StringList, nil),
		KMSKey:     eval.Get(e, nil, key, as.NotEmpty, ""),
	}
}

func kmsKeyName(v cty.Value) (string, error) {
	s, err := as.NotEmpty(v)
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

// provider decodes a provider attribute.
func (e *Decoder) provider(s eval.RepetitionData, x *configs.Expression) schema.ProviderName {
	implied := e.Whole.Implied
	if len(e.Handed) == 1 {
		implied = slices.Sorted(maps.Keys(e.Handed))[0] // the only one that the module knows
	}
	asked := eval.Get(e, s, x, as.OneOf(schema.ProviderNames()...), implied)
	name := e.Handed.On(asked)
	if _, known := e.Handed[asked]; e.Handed != nil && !known && x != nil {
		e.ErrorAt(x.Range, "Provider not handed in", fmt.Sprintf("The call of this module hands in %s only (%s): add %s = provider.%s to its providers, or leave them out to hand in all.",
			joined(slices.Sorted(maps.Keys(e.Handed))), diagnose.Place(e.CallBlock().Range()), asked, asked))
	}
	if e.Options.Local {
		return schema.ProviderLocal
	}
	if name == schema.ProviderGCP && x != nil && e.Root().Decls.Providers[name] == nil {
		e.ErrorAt(x.Range, "Missing block", "Google Cloud needs a project: add provider \"gcp\" { project = \"…\" } to the files of the stack.")
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
func (e *Decoder) providers(d *schema.Desired) []schema.Provider {
	used := map[schema.ProviderName]bool{}
	for name := range e.Decls.Providers {
		used[name] = true
	}
	for i := range d.Jobs {
		used[d.Jobs[i].Resources.Provider] = true
	}
	for i := range d.Reservations {
		used[d.Reservations[i].Provider] = true
	}
	delete(used, "") // of what is wrong
	mapped := used[schema.ProviderGCP] && e.Options.Local
	if mapped {
		delete(used, schema.ProviderGCP)
		used[schema.ProviderLocal] = true
	}
	var providers []schema.Provider
	for _, name := range slices.Sorted(maps.Keys(used)) {
		b := e.Decls.Providers[name]
		p := schema.Provider{Name: name}
		switch name {
		case schema.ProviderLocal:
			p.CPU = eval.Get(e, nil, b.Attr("cpu"), as.Cores, 0)
			p.Memory = eval.Get(e, nil, b.Attr("memory"), as.Bytes, 0)
			p.GPU = e.machineGPU(b.Child("gpu"))
			p.Slices = eval.Get(e, nil, b.Attr("slices"), as.WholeNumber(1, math.MaxInt32), 0)
		case schema.ProviderGCP:
			p = e.Whole.GCP
		}
		providers = append(providers, p)
	}
	return providers
}

func (e *Decoder) controller() *schema.Controller {
	b := e.Decls.Controller
	if b == nil {
		return nil
	}
	return &schema.Controller{Provider: e.provider(nil, b.Attr("provider"))}
}
