package accelerators

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// GPUType is one type of NVIDIA GPU.
type GPUType struct {
	Name   string // canonical, "a100-80gb"
	Memory int    // of one GPU, in GiB as its name states it
}

// MaxGPUs bounds the GPUs of one machine.
const MaxGPUs = 64

// GPUTypes are the types that are known, the newest first, with the memory of
// NVIDIA's data sheets. Machines elsewhere may have any number of them, see [GPUCounts].
func GPUTypes() []GPUType {
	return []GPUType{
		{"b300", 288},
		{"gb200", 186},
		{"b200", 180},
		{"h200", 141},
		{"gh200", 96},
		{"h100", 80},
		{"a100-80gb", 80},
		{"a100", 40},
		{"rtx-pro-6000", 96},
		{"l40s", 48},
		{"l40", 48},
		{"l4", 24},
		{"a40", 48},
		{"a10g", 24},
		{"a10", 24},
		{"a6000", 48},
		{"rtx5090", 32},
		{"rtx4090", 24},
		{"rtx3090", 24},
		{"t4", 16},
		{"v100", 16},
		{"p100", 16},
		{"p4", 8},
	}
}

// GPUTypeNames are the names of the known types.
func GPUTypeNames() []string {
	var names []string
	for _, t := range GPUTypes() {
		names = append(names, t.Name)
	}
	return names
}

// ParseGPU returns the type of GPU of a name as people and tools write it: "h100",
// "H100", "nvidia-h100-80gb", "NVIDIA A100-SXM4-80GB". The error names what may have
// been meant.
func ParseGPU(s string) (GPUType, error) {
	if t, found := gpuNamed(s); found {
		return t, nil
	}
	if shape, err := Parse(s); err == nil {
		return GPUType{}, fmt.Errorf("%q is a TPU type: write tpu = %q in place of the gpu block", s, shape.Type)
	}
	if meant := meantGPUs(s); len(meant) > 0 {
		return GPUType{}, fmt.Errorf("there is no GPU type %q; did you mean %s?", s, strings.Join(meant, " or "))
	}
	return GPUType{}, fmt.Errorf("there is no GPU type %q; the types are %s", s, strings.Join(GPUTypeNames(), ", "))
}

// gpuName is a name of a GPU without maker, form factor and kind of memory.
type gpuName struct {
	base   string // "a100", lower case, without separators
	memory int    // in GB; 0: not stated
}

func gpuNameOf(s string) gpuName {
	var n gpuName
	for _, word := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return strings.ContainsRune(" -_/", r) }) {
		size, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSuffix(word, "b"), "g"))
		switch {
		case slices.Contains([]string{"nvidia", "tesla", "geforce", "pcie", "nvl", "sxm"}, word):
		case strings.HasPrefix(word, "sxm"), strings.HasPrefix(word, "hbm"):
		case err == nil && n.base != "" && (strings.HasSuffix(word, "g") || strings.HasSuffix(word, "gb")):
			n.memory = size
		default:
			n.base += word
		}
	}
	return n
}

// gpuNamed finds a type by a name. Where one type has variants by memory, the one
// without its size in its name is meant unless the size is stated.
func gpuNamed(s string) (GPUType, bool) {
	n := gpuNameOf(s)
	for _, base := range []string{n.base, strings.TrimPrefix(n.base, "rtx")} {
		for _, t := range GPUTypes() {
			is := gpuNameOf(t.Name)
			if is.base == base && (n.memory == t.Memory || n.memory == 0 && is.memory == 0) {
				return t, true
			}
		}
	}
	return GPUType{}, false
}

// meantGPUs are the types, quoted, that a name of none may stand for: those that share
// the longest beginning with it, else the nearest.
func meantGPUs(s string) []string {
	base := gpuNameOf(s).base
	var best []string
	longest := 1
	for _, name := range GPUTypeNames() {
		switch n := schema.CommonPrefix(base, gpuNameOf(name).base); {
		case n > longest:
			best, longest = []string{strconv.Quote(name)}, n
		case n == longest && n > 1:
			best = append(best, strconv.Quote(name))
		}
	}
	if near := schema.Nearest(base, GPUTypeNames()); len(best) == 0 && near != "" {
		return []string{strconv.Quote(near)}
	}
	return best
}

// gpuMeant is what to write for a text that stands where a TPU type should and names
// GPUs: "h100", "h100-8", "h100:8"; false for any other.
func gpuMeant(s string) (schema.GPU, bool) {
	if t, found := gpuNamed(s); found {
		return schema.GPU{Type: t.Name, Count: 1}, true
	}
	at := strings.LastIndexAny(s, "-:x ")
	if at < 0 {
		return schema.GPU{}, false
	}
	count, err := strconv.Atoi(s[at+1:])
	t, found := gpuNamed(s[:at])
	return schema.GPU{Type: t.Name, Count: count}, found && err == nil && count > 0 && count <= MaxGPUs
}

// CheckCount reports a number of these GPUs that no machine of Google Cloud has.
func (t GPUType) CheckCount(count int) error {
	has := GPUCounts(t.Name)
	if slices.Contains(has, count) {
		return nil
	}
	if len(has) == 0 {
		return fmt.Errorf("no machine that fray knows has %s", t.Name)
	}
	var counts []string
	for _, n := range has {
		counts = append(counts, strconv.Itoa(n))
	}
	return fmt.Errorf("machines with %s have %s of them, not %d", t.Name, strings.Join(counts, ", "), count)
}

// Chips are the chips of a slice: of its TPU, and its GPUs. They are what limits and
// budgets of namespaces count.
func Chips(spec *schema.SliceSpec) int {
	gpus := spec.GPU.Count * max(1, spec.Hosts)
	if spec.TPU == "" {
		return gpus
	}
	if shape, err := Parse(spec.TPU); err == nil {
		return shape.Chips + gpus
	}
	return gpus
}
