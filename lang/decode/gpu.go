package decode

import (
	"fmt"
	"math"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// GPU decodes the GPUs of a machine; none where there is no block, or a wrong one.
func (e *Decoder) GPU(s eval.RepetitionData, b *configs.Block) schema.GPU {
	if b == nil {
		return schema.GPU{}
	}
	return schema.GPU{
		Type:  eval.Get(e, s, b.Attr("type"), gpuType, ""),
		Count: eval.Get(e, s, b.Attr("count"), as.WholeNumber(1, accelerators.MaxGPUs), 1),
	}
}

// machineGPU decodes the GPUs that the provider local has, of any type where none is stated.
func (e *Decoder) machineGPU(b *configs.Block) schema.GPU {
	if b == nil {
		return schema.GPU{}
	}
	return schema.GPU{
		Type:  eval.Get(e, nil, b.Attr("type"), gpuType, ""),
		Count: eval.Get(e, nil, b.Attr("count"), as.WholeNumber(1, math.MaxInt32), 0),
	}
}

func gpuType(v cty.Value) (string, error) {
	name, err := as.NotEmpty(v)
	if err != nil {
		return "", err
	}
	t, err := accelerators.ParseGPU(name)
	return t.Name, err
}

// checkGPUs reports GPUs that no machine of Google Cloud has.
func checkGPUs(report eval.Reporter, b *configs.Block, gpu schema.GPU) {
	if gpu.Count == 0 {
		return
	}
	if gpu.Type == "" {
		if b.Attr("type") == nil { // else wrong, and reported
			report.ErrorAt(b.Range(), "GPU type missing", "Google Cloud has machines with GPUs of many types: write type = \"h100\", or another one, in the gpu block.")
		}
		return
	}
	known, err := accelerators.ParseGPU(gpu.Type)
	if err == nil {
		err = known.CheckCount(gpu.Count)
	}
	if err != nil {
		report.ErrorAt(b.Range(), "No such machine", fmt.Sprintf("On Google Cloud, %v.", err))
	}
}

// checkOneAccelerator reports GPUs beside a TPU.
func checkOneAccelerator(report eval.Reporter, b *configs.Block) {
	if gpu := b.Child("gpu"); gpu != nil {
		report.ErrorAt(gpu.Range(), "TPU and gpu", "A machine has a TPU or GPUs: remove tpu or the gpu block.")
	}
}
