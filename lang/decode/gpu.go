package decode

import (
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
	gpu := schema.GPU{
		Type:  eval.Get(e, s, b.Attr("type"), gpuType, ""),
		Count: eval.Get(e, s, b.Attr("count"), as.WholeNumber(1, accelerators.MaxGPUs), 1),
	}
	if gpu.Type == "" {
		return schema.GPU{}
	}
	return gpu
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

// checkOneAccelerator reports GPUs beside a TPU.
func (e *Decoder) checkOneAccelerator(b *configs.Block) {
	if gpu := b.Child("gpu"); gpu != nil {
		e.ErrorAt(gpu.Range(), "TPU and gpu", "A machine has a TPU or GPUs: remove tpu or the gpu block.")
	}
}
