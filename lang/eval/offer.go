package eval

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/schema"
)

// Offer decodes an offer block of a provider.
func (e *Evaluator) Offer(b *configs.Block) schema.Market {
	m := schema.Market{
		Name:     b.Name,
		Zones:    Get(e, nil, b.Attr("zones"), as.StringList, nil),
		Engine:   Get(e, nil, b.Attr("engine"), as.OneOf(schema.EngineTPU, schema.EngineGCE), ""),
		OnDemand: Get(e, nil, b.Attr("on_demand"), asPrice, 0),
		Spot:     Get(e, nil, b.Attr("spot"), asPrice, 0),
	}
	if m.Name == "v5e" {
		m.Name = "v5litepod"
	}
	names := accelerators.GenerationNames()
	if gpu, err := accelerators.ParseGPU(m.Name); err == nil && !slices.Contains(names, m.Name) {
		m.Name = gpu.Name
	} else if !slices.Contains(names, m.Name) && !strings.Contains(m.Name, "-") {
		e.ErrorAt(b.Range(), "Unknown offer", strings.TrimSpace(fmt.Sprintf("%q is neither a TPU generation (%s) nor a GPU type such as \"h100\" nor a machine type such as \"n2-standard-8\". %s",
			m.Name, strings.Join(names, ", "), diagnose.DidYouMean(m.Name, append(names, accelerators.GPUTypeNames()...)))))
	}
	if e.madeByAnother(m) {
		e.ErrorAt(b.Attr("engine").Range, "Engine cannot do this", fmt.Sprintf("Compute Engine makes TPUs of %s only: write engine = \"tpu\", or remove engine.",
			strings.Join(accelerators.ComputeEngineGenerations(), ", ")))
	}
	return m
}

// madeByAnother reports an offer of a TPU generation that Compute Engine has not.
func (e *Evaluator) madeByAnother(m schema.Market) bool {
	return m.Engine == schema.EngineGCE && slices.Contains(accelerators.GenerationNames(), m.Name) &&
		!slices.Contains(accelerators.ComputeEngineGenerations(), m.Name)
}

// asPrice converts an amount of US dollars.
func asPrice(v cty.Value) (float64, error) {
	n, err := as.Float(v)
	if err != nil || n.Cmp(new(big.Float)) < 0 || n.Cmp(big.NewFloat(1e6)) > 0 {
		return 0, fmt.Errorf("want a price in US dollars such as 1.20, this is %s", diagnose.Friendly(v))
	}
	f, _ := n.Float64()
	return f, nil
}
