package accelerators

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// ComputeEngineGenerations are the TPU generations that Compute Engine makes machines
// of (its documentation, "TPU machines in accelerator-optimized machine family"). The
// TPU API makes those before TPU7x.
func ComputeEngineGenerations() []string { return []string{"v5p", "v6e", "tpu7x"} }

// IsOnComputeEngine reports whether Compute Engine makes slices of this shape.
func (a Shape) IsOnComputeEngine() bool {
	return slices.Contains(ComputeEngineGenerations(), a.Generation)
}

// EngineOf chooses the API for a slice that states none: Compute Engine for
// machines without TPU, for what the TPU API does not serve (TPU7x, and the AI
// zones, whose names end in "ai" and more), and where offers list them.
func EngineOf(tpu, zone string, offers []schema.Market) schema.Engine {
	if tpu == "" {
		return schema.EngineGCE
	}
	shape, err := Parse(tpu)
	if err != nil || shape.Generation == "tpu7x" || strings.Contains(zone[strings.LastIndexByte(zone, '-')+1:], "ai") {
		return schema.EngineGCE
	}
	for i := range offers {
		if offers[i].Name == shape.Generation && offers[i].Engine != "" {
			return offers[i].Engine
		}
	}
	return schema.EngineTPU
}
