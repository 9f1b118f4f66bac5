package accelerators

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// Shape is the shape of one slice of a TPU type.
type Shape struct {
	Type         string // canonical, "v5litepod-16"
	Generation   string // "v5litepod"
	Chips        int    // of the whole slice
	Hosts        int    // VMs
	ChipsPerHost int
	Topology     string // "4x4" or "2x2x4", in chips
}

// LibtpuInitArgs is what LIBTPU_INIT_ARGS should hold for this generation, ""
// for those that need nothing.
func (a Shape) LibtpuInitArgs() string {
	switch a.Generation {
	case "v5litepod", "v5p":
		return "--xla_tpu_scoped_vmem_limit_kib=50000"
	case "v6e":
		return "--xla_tpu_scoped_vmem_limit_kib=98304"
	}
	return ""
}

// generation is one row of the table of shapes; the sizes are those that the
// Cloud TPU documentation publishes.
type generation struct {
	name         string
	coresPerChip int    // what the suffix counts: 1 means chips
	sizes        []int  // valid suffixes; nil: every 3D topology up to maxDims
	maxDims      [3]int // in chips, ascending
}

func generations() []generation {
	names := GenerationNames()
	all := make([]generation, len(names))
	for i, name := range names {
		all[i], _ = generationNamed(name)
	}
	return all
}

// generationNamed is the generation of a name, false if there is none.
func generationNamed(name string) (generation, bool) {
	g := generation{name: name}
	switch name {
	case "v2":
		g.coresPerChip, g.sizes = 2, []int{8, 32, 128, 256, 512}
	case "v3":
		g.coresPerChip, g.sizes = 2, []int{8, 32, 64, 128, 256, 512, 1024, 2048}
	case "v4":
		g.coresPerChip, g.maxDims = 2, [3]int{8, 16, 16}
	case "v5litepod", "v6e":
		g.coresPerChip, g.sizes = 1, []int{1, 4, 8, 16, 32, 64, 128, 256}
	case "v5p", "tpu7x":
		g.coresPerChip, g.maxDims = 2, [3]int{16, 16, 24}
	default:
		return generation{}, false
	}
	return g, true
}

// GenerationNames are the names of the TPU generations.
func GenerationNames() []string {
	return []string{"v2", "v3", "v4", "v5litepod", "v5p", "v6e", "tpu7x"}
}

// Parse returns the shape of a TPU type such as "v5litepod-16";
// "v5e-16" is another spelling of it. The error names what may have been meant.
func Parse(s string) (Shape, error) {
	name, suffix, ok := strings.Cut(s, "-")
	if g, known := generationMeant(name); known {
		n, err := strconv.Atoi(suffix)
		if !ok || err != nil || n <= 0 || strconv.Itoa(n) != suffix {
			return Shape{}, fmt.Errorf("%q is not a TPU type: want %s-N, for example %s-%d", s, name, name, g.validSizes()[0])
		}
		if topology, valid := g.topology(n); valid {
			return g.shape(n, topology), nil
		}
		return Shape{}, fmt.Errorf("there is no TPU type %q; the nearest are %s", s, strings.Join(g.nearest(n), " and "))
	}
	if gpu, is := gpuMeant(s); is {
		return Shape{}, fmt.Errorf("%q is no TPU but a GPU: write a block gpu with type = %q and count = %d in resources", s, gpu.Type, gpu.Count)
	}
	if meant := meantAccelerators(s); len(meant) > 0 {
		return Shape{}, fmt.Errorf("there is no TPU type %q; did you mean %s?", s, strings.Join(meant, " or "))
	}
	return Shape{}, fmt.Errorf("there is no TPU type %q; write GENERATION-SIZE, the generations are %s", s, strings.Join(GenerationNames(), ", "))
}

// generationMeant is the generation of a TPU type that begins with a name, false where it is
// that of no TPU.
func generationMeant(name string) (generation, bool) {
	if name == "v5e" {
		name = "v5litepod"
	}
	return generationNamed(name)
}

// isTPU reports whether a name begins as TPU types do. That is cheaper to ask than [Parse],
// which finds out what another name may have meant.
func isTPU(s string) bool {
	name, _, _ := strings.Cut(s, "-")
	_, known := generationMeant(name)
	return known
}

// meantAccelerators are the TPU types, quoted, that a name of no generation may
// stand for: "V5LITEPOD-16", "v5-16", "v6e16".
func meantAccelerators(s string) []string {
	s = strings.NewReplacer(" ", "", "_", "-").Replace(strings.ToLower(s))
	digits := len(strings.TrimRight(s, "0123456789"))
	size, err := strconv.Atoi(s[digits:])
	if err != nil {
		return nil
	}
	var types []string
	names := meantGenerations(strings.TrimSuffix(s[:digits], "-"))
	for _, g := range generations() {
		if slices.Contains(names, g.name) {
			types = append(types, g.nearest(size)...)
		}
	}
	return types
}

// meantGenerations are the generations that share a beginning with a name, down
// to the number of the version.
func meantGenerations(name string) []string {
	if rest, ok := strings.CutPrefix(name, "tpu"); ok && strings.HasPrefix(strings.TrimPrefix(rest, "-"), "v") {
		name = strings.TrimPrefix(rest, "-")
	}
	switch name {
	case "v5e", "v5lite":
		return []string{"v5litepod"}
	case "v7", "v7x", "ironwood":
		return []string{"tpu7x"}
	}
	best, longest := []string(nil), 1
	for _, g := range generations() {
		switch n := schema.CommonPrefix(name, g.name); {
		case n > longest:
			best, longest = []string{g.name}, n
		case n == longest && n > 1:
			best = append(best, g.name)
		}
	}
	return best
}

func (g generation) shape(n int, topology string) Shape {
	chips := n / g.coresPerChip
	perHost := min(chips, 4)
	if g.coresPerChip == 1 && n == 8 {
		perHost = 8
	}
	return Shape{
		Type:         fmt.Sprintf("%s-%d", g.name, n),
		Generation:   g.name,
		Chips:        chips,
		Hosts:        chips / perHost,
		ChipsPerHost: perHost,
		Topology:     topology,
	}
}

func (g generation) topology(n int) (string, bool) {
	if g.sizes != nil {
		if !slices.Contains(g.sizes, n) {
			return "", false
		}
		return topology2D(n / g.coresPerChip), true
	}
	if n%g.coresPerChip != 0 {
		return "", false
	}
	return topology3D(n/g.coresPerChip, g.maxDims)
}

func topology2D(chips int) string {
	x := 1
	for (2*x)*(2*x) <= chips {
		x *= 2
	}
	return fmt.Sprintf("%dx%d", x, chips/x)
}

// topology3D returns the most cubic published topology of a number of chips:
// 2x2x1, 2x2x2, 2x2x4, 2x4x4, then dimensions that are multiples of 4.
func topology3D(chips int, limit [3]int) (string, bool) {
	switch chips {
	case 4:
		return "2x2x1", true
	case 8:
		return "2x2x2", true
	case 16:
		return "2x2x4", true
	case 32:
		return "2x4x4", true
	}
	best, bestSpread := "", 0
	for x := 4; x <= limit[0]; x += 4 {
		for y := x; y <= limit[1]; y += 4 {
			z := chips / (x * y)
			if x*y*z != chips || z%4 != 0 || z < y || z > limit[2] {
				continue
			}
			if best == "" || z-x < bestSpread {
				best, bestSpread = fmt.Sprintf("%dx%dx%d", x, y, z), z-x
			}
		}
	}
	return best, best != ""
}

func (g generation) validSizes() []int {
	if g.sizes != nil {
		return g.sizes
	}
	var sizes []int
	largest := g.maxDims[0] * g.maxDims[1] * g.maxDims[2]
	for chips := 4; chips <= largest; chips += 4 {
		if _, ok := topology3D(chips, g.maxDims); ok {
			sizes = append(sizes, chips*g.coresPerChip)
		}
	}
	return sizes
}

// nearest returns the valid types just below and just above n, quoted; only n
// where it is valid itself.
func (g generation) nearest(n int) []string {
	sizes := g.validSizes()
	i, found := slices.BinarySearch(sizes, n)
	if found {
		return []string{fmt.Sprintf("%q", fmt.Sprintf("%s-%d", g.name, n))}
	}
	var near []string
	for _, j := range []int{i - 1, i} {
		if j >= 0 && j < len(sizes) {
			near = append(near, fmt.Sprintf("%q", fmt.Sprintf("%s-%d", g.name, sizes[j])))
		}
	}
	return near
}
