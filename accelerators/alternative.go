package accelerators

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// ParseAlternative returns the canonical form of one of several alternatives: a TPU type,
// "v5litepod-16", or the GPUs of a machine as "TYPE:COUNT", "h100:8"; "h100" is one of them.
// The error names what may have been meant.
func ParseAlternative(s string) (schema.Accelerator, error) {
	if name, text, counted := strings.Cut(s, ":"); counted {
		return parseGPUs(s, name, text)
	}
	shape, err := Parse(s)
	if err == nil {
		return schema.Accelerator(shape.Type), nil
	}
	if t, found := gpuNamed(s); found {
		return schema.Accelerator(schema.GPU{Type: t.Name, Count: 1}.Kind()), nil
	}
	if gpu, is := gpuMeant(s); is {
		return "", fmt.Errorf("%q names GPUs: write %q", s, gpu.Kind())
	}
	near := meantAccelerators(s)
	if len(near) == 0 {
		near = meantGPUs(s)
	}
	if len(near) > 0 {
		return "", fmt.Errorf("there is no accelerator %q; did you mean %s?", s, strings.Join(near, " or "))
	}
	return "", fmt.Errorf("there is no accelerator %q; write a TPU type such as \"v5litepod-16\", of the generations %s, or GPUs such as \"h100:8\", of the types %s",
		s, strings.Join(GenerationNames(), ", "), strings.Join(GPUTypeNames(), ", "))
}

func parseGPUs(s, name, text string) (schema.Accelerator, error) {
	if shape, err := Parse(name); err == nil {
		return "", fmt.Errorf("%q is a TPU type and has no number behind it: write %q, and slices for more of them", s, shape.Type)
	}
	t, err := ParseGPU(name)
	if err != nil {
		return "", err
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 || count > MaxGPUs {
		return "", fmt.Errorf("%q: want a number of GPUs from 1 to %d after the colon, as in %q", s, MaxGPUs, schema.GPU{Type: t.Name, Count: 1}.Kind())
	}
	return schema.Accelerator(schema.GPU{Type: t.Name, Count: count}.Kind()), nil
}
