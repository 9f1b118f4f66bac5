package accelerators

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Environment is what libtpu has to know of a slice that no metadata server
// describes: the variables that are the same on all its hosts. Their names and values
// are those that the TPU device plugin of Google Kubernetes Engine sets, which also
// keeps libtpu from the metadata server.
func (a Shape) Environment() map[string]string {
	env := map[string]string{
		"TPU_SKIP_MDS_QUERY":        "true",
		"TPU_ACCELERATOR_TYPE":      a.Type,
		"TPU_TOPOLOGY":              a.Topology,
		"TPU_TOPOLOGY_ALT":          "false", // only the TPU API makes twisted slices
		"TPU_TOPOLOGY_WRAP":         joined(a.wrap()),
		"TPU_CHIPS_PER_HOST_BOUNDS": joined(a.hostChips()),
		"TPU_HOST_BOUNDS":           joined(a.hosts()),
		"TPU_RUNTIME_METRICS_PORTS": joined(a.metricsPorts()),
	}
	if a.isOfCubes() {
		env["ENABLE_ICI_RESILIENCY"] = "true"
	}
	return env
}

// dims is the topology in chips: x, y and z.
func (a Shape) dims() []int {
	dims := []int{1, 1, 1}
	for i, text := range strings.SplitN(a.Topology, "x", len(dims)) {
		dims[i], _ = strconv.Atoi(text) // of a shape that Parse made
	}
	return dims
}

// hostChips are the chips of one host: x, y and z.
func (a Shape) hostChips() []int {
	switch a.ChipsPerHost {
	case 1:
		return []int{1, 1, 1}
	case 8:
		return []int{2, 4, 1}
	}
	return []int{2, 2, 1}
}

// hosts are the hosts of the slice: x, y and z.
func (a Shape) hosts() []int {
	hosts, chips := a.dims(), a.hostChips()
	for i := range hosts {
		hosts[i] /= chips[i]
	}
	return hosts
}

// isThreeDimensional reports whether the chips of a generation are wired as a 3D torus.
func (a Shape) isThreeDimensional() bool {
	return slices.Contains([]string{"v4", "v5p", "tpu7x"}, a.Generation)
}

// isOfCubes reports whether the slice is made of whole cubes of 4x4x4 chips, which
// optical switches connect: links can be routed around there.
func (a Shape) isOfCubes() bool {
	return a.isThreeDimensional() && slices.Min(a.dims()) >= 4
}

// wrap reports in which dimensions the last chip is wired to the first: in all those
// of whole cubes, and in 2D in those as long as a pod.
func (a Shape) wrap() []bool {
	if a.isOfCubes() {
		return []bool{true, true, true}
	}
	const podLength = 16
	wrap := make([]bool, 3)
	for i, length := range a.dims() {
		wrap[i] = length == podLength && slices.Contains([]string{"v5litepod", "v6e"}, a.Generation)
	}
	return wrap
}

// metricsPorts are where libtpu serves the metrics of each chip of a host, of TPU7x
// those of each of its two cores.
func (a Shape) metricsPorts() []int {
	const first = 8431
	count := a.ChipsPerHost
	if a.Generation == "tpu7x" {
		count *= 2
	}
	ports := make([]int, count)
	for i := range ports {
		ports[i] = first + i
	}
	return ports
}

// joined writes values with commas between them.
func joined[T any](values []T) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ",")
}
