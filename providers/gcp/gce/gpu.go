package gce

import (
	"fmt"
	"maps"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/machinetype"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// attachedGPUs are the GPUs that a request attaches; nil for machines that come with
// theirs, or have none.
func attachedGPUs(spec schema.SliceSpec) []computeapi.AcceleratorConfig {
	gpus, ok := machinetype.GPUs(spec)
	if !ok || !gpus.Attached {
		return nil
	}
	return []computeapi.AcceleratorConfig{{AcceleratorType: gpus.Accelerator, AcceleratorCount: int32(gpus.Count)}}
}

// cardsOf are attached GPUs as people read them: "2 nvidia-tesla-t4"; "" for none.
func cardsOf(cards []computeapi.AcceleratorConfig) string {
	if len(cards) == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", cards[0].AcceleratorCount, baseOf(cards[0].AcceleratorType))
}

// withDriver adds to the metadata of machines with GPUs which image is to have their
// driver, by which the startup script explains that it lacks one.
func withDriver(metadata map[string]string, spec schema.SliceSpec) map[string]string {
	if _, ok := machinetype.GPUs(spec); !ok {
		return metadata
	}
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[mark.KeyDriverImage] = machinetype.BootImage(spec)
	return metadata
}
