package environment

import (
	"slices"
	"strconv"
	"strings"
)

// addGPU sets which GPUs CUDA and NVIDIA's container runtime show to the task: its own
// by their indices. A task that has none and shares its machine sees none, as in Ray and
// in the device plugin of Kubernetes; one with a machine of its own sees what is there.
func addGPU(env map[string]string, s Setting) {
	run := s.Run
	switch {
	case len(s.GPUs) > 0:
		env[VisibleDevices] = strings.Join(VisibleGPUs(s.GPUs, env[VisibleDevices], s.Simulated), ",")
		env["NVIDIA_VISIBLE_DEVICES"] = env[VisibleDevices]
		env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID" // else CUDA numbers the fastest first, unlike all others
	case s.Simulated || run.Spec.Resources.Packed:
		env[VisibleDevices] = ""
		env["NVIDIA_VISIBLE_DEVICES"] = "void"
	}
}

// VisibleGPUs names GPUs of a host as NVIDIA's tools do: by indices, or by UUIDs where the
// agent was given its own by these. listed is the agent's own CUDA_VISIBLE_DEVICES.
// The result is nil where listed has too few.
func VisibleGPUs(gpus []int, listed string, simulated bool) []string {
	// The agent sees but these. Where it has a machine of its own and they are numbers,
	// they are the same numbers.
	if listed != "" && (simulated || !areNumbers(listed)) {
		return within(strings.Split(listed, ","), gpus)
	}
	return indices(gpus)
}

// VisibleDevices is CUDA's variable of the GPUs that a process sees.
const VisibleDevices = "CUDA_VISIBLE_DEVICES"

// areNumbers reports whether a list has indices, and not the UUIDs of GPUs or parts of them.
func areNumbers(listed string) bool {
	for part := range strings.SplitSeq(listed, ",") {
		if _, err := strconv.Atoi(strings.TrimSpace(part)); err != nil {
			return false
		}
	}
	return true
}

func indices(gpus []int) []string {
	list := make([]string, 0, len(gpus))
	for _, n := range gpus {
		list = append(list, strconv.Itoa(n))
	}
	return list
}

// within are the entries of the list of an outer process that these GPUs are; none
// where one is beyond the list, for CUDA knows no others there.
func within(listed []string, gpus []int) []string {
	visible := make([]string, 0, len(gpus))
	for _, n := range gpus {
		if n >= len(listed) {
			return nil
		}
		visible = append(visible, strings.TrimSpace(listed[n]))
	}
	return slices.Clip(visible)
}

// addCoordinator sets what jax.distributed.initialize() reads: of a gang, whatever its processes compute on, and of a task
// with a TPU or a GPU.
func addCoordinator(env map[string]string, s Setting) {
	if s.Run.Accelerator == "" && len(s.GPUs) == 0 && len(s.Run.Peers) < 2 {
		return
	}
	env["JAX_COORDINATOR_ADDRESS"] = s.Run.Coordinator
	env["JAX_NUM_PROCESSES"] = strconv.Itoa(len(s.Run.Peers))
	env["JAX_PROCESS_ID"] = strconv.Itoa(s.Task)
}
