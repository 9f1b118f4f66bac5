package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// Accelerators decodes alternatives into resources, the first of them as what they name.
func (e *Decoder) Accelerators(s eval.RepetitionData, b *configs.Block, r *schema.Resources) {
	x := b.Attr("accelerators")
	names := eval.Get(e, s, x, someTexts, nil)
	var all []schema.Accelerator
	for i, name := range names {
		a, err := accelerators.ParseAlternative(name)
		switch {
		case err != nil:
			e.ErrorAt(elementRange(x, i), "Unknown accelerator", sentenceOf(err))
		case slices.Contains(all, a):
			e.ErrorAt(elementRange(x, i), "Duplicate accelerator", fmt.Sprintf("%s stands before it in the list already: remove one of the two.", a))
		default:
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return
	}
	for _, name := range []string{"tpu", "cpu", "memory", "disk", "machine_type"} {
		if other := b.Attr(name); other != nil {
			e.ErrorAt(other.Range, "Accelerators and "+name, fmt.Sprintf("Each of the alternatives brings its own machines: remove %s, or remove accelerators.", name))
		}
	}
	if gpu := b.Child("gpu"); gpu != nil {
		e.ErrorAt(gpu.Range(), "Accelerators and gpu", fmt.Sprintf("The alternatives name their GPUs: add \"TYPE:COUNT\" to the list, such as %q, and remove the gpu block.", "h100:8"))
	}
	r.Accelerators, r.TPU, r.GPU = all, all[0].TPU(), all[0].GPU()
}

func someTexts(v cty.Value) ([]string, error) {
	names, err := as.StringList(v)
	if err == nil && len(names) == 0 {
		return nil, errors.New("the list names nothing to run on: write at least one, such as [\"v5litepod-16\", \"h100:8\"]")
	}
	return names, err
}

// sentenceOf is an error's text as a sentence.
func sentenceOf(err error) string {
	text := err.Error()
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// elementRange is where an element of a list is written, or the list.
func elementRange(x *configs.Expression, i int) hcl.Range {
	if items, diags := hcl.ExprList(x.Expr); !diags.HasErrors() && i < len(items) {
		return items[i].Range()
	}
	return x.Expr.Range()
}

// checkAlternatives reports alternatives that no zone has in which the job may be, and
// stated zones that have none of them.
func (e *Decoder) checkAlternatives(b *configs.Block, r *schema.Resources) {
	stated := b.Attr("zones")
	zones, whose := r.Zones, "the zones here"
	if stated == nil {
		zones, whose = e.Whole.GCP.Zones, "the provider's zones"
	}
	if len(zones) == 0 {
		return
	}
	used := map[string]bool{}
	for i, a := range r.Accelerators {
		may := accelerators.ZonesWith(string(a), zones, e.Whole.GCP.Offers)
		for _, zone := range may {
			used[zone] = true
		}
		if len(may) == 0 {
			e.ErrorAt(elementRange(b.Attr("accelerators"), i), "Zone without this accelerator", fmt.Sprintf(
				"None of %s (%s) has %s. Zones that do: %s.", whose, strings.Join(zones, ", "), a, strings.Join(accelerators.OfferedZones(string(a), e.Whole.GCP.Offers), ", ")))
		}
	}
	if stated == nil {
		return
	}
	for i, zone := range zones {
		if !used[zone] {
			e.ErrorAt(elementRange(stated, i), "Zone without these accelerators", fmt.Sprintf("%s has none of %s: remove it.", zone, schema.JoinAccelerators(r.Accelerators)))
		}
	}
}
