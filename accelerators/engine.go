package accelerators

import (
	"strings"

	"github.com/fray-ml/fray/schema"
)

// EngineOf chooses the API for a slice that states none: Compute Engine for
// machines without TPU, for what the TPU API does not serve (TPU7x, and the AI
// zones, whose names end in "ai" and more), and where offers list them.
func EngineOf(tpu, zone string, offers []schema.Market) schema.Engine {
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
