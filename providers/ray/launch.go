package ray

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/ray/driver"
	"github.com/fray-ml/fray/schema"
)

// bundle is what one host of a slice takes of a node, in Ray's resources.
type bundle map[string]float64

// launch is what the driver of a slice is to do, in its job's metadata. The driver reads it by these
// names.
type launch struct {
	Namespace string   `json:"namespace"`          // of Ray, for the driver's actors
	Bundles   []bundle `json:"bundles"`            // by host
	TPU       string   `json:"tpu,omitempty"`      // the TPU type, "" without
	TPUHead   string   `json:"tpu_head,omitempty"` // Ray's resource of the first host of such a TPU
	Args      []string `json:"args"`               // of "fray", but for what only a node knows
	Digest    string   `json:"digest"`             // of fray's program
}

// acceleratorType begins the name of the resource by which Ray tells the types of GPUs apart: a node has 1 of
// it, and what needs the type asks for a little of that.
const (
	acceleratorType = "accelerator_type:"
	aLittle         = 0.001
)

// gpuName is Ray's name of a type of GPUs: that which a node finds by NVIDIA's name of its product. Only A100-80G is one
// that people give to nodes, for Ray calls them all A100 (ray.util.accelerators).
func gpuName(gpu string) string {
	switch gpu {
	case "a100-80gb":
		return "A100-80G"
	case "a6000":
		return "RTX-A6000"
	case "rtx3090", "rtx4090", "rtx5090":
		return "GeForce-RTX-" + strings.TrimPrefix(gpu, "rtx")
	}
	return strings.ToUpper(gpu)
}

// bundlesOf are the resources of a slice's hosts: TPU chips, or cores, GPUs and memory.
func bundlesOf(spec schema.SliceSpec) ([]bundle, error) {
	own := bundle{}
	switch {
	case spec.TPU != "":
		shape, err := accelerators.Parse(spec.TPU)
		if err != nil {
			return nil, failf(schema.ErrorInvalid, "TPU type %q: %w", spec.TPU, err)
		}
		own["TPU"] = float64(shape.ChipsPerHost)
	default:
		if spec.CPU > 0 {
			own["CPU"] = spec.CPU
		}
	}
	if spec.GPU.Count > 0 {
		own["GPU"] = float64(spec.GPU.Count)
		if spec.GPU.Type != "" {
			own[acceleratorType+gpuName(spec.GPU.Type)] = aLittle
		}
	}
	if spec.Memory > 0 {
		own["memory"] = float64(spec.Memory)
	}
	if len(own) == 0 {
		own["CPU"] = 1
	}
	all := make([]bundle, spec.Hosts)
	for n := range all {
		all[n] = maps.Clone(own)
	}
	return all, nil
}

// headOf is Ray's resource of the first host of a TPU slice.
func headOf(spec schema.SliceSpec) string {
	if spec.TPU == "" {
		return ""
	}
	return "TPU-" + spec.TPU + "-head"
}

// stopPatience is how long Ray waits for a driver that it was asked to stop before it kills it:
// agents end their tasks meanwhile, which have a grace of their own.
const stopPatience = 600 // seconds

// entrypoint runs the driver in place of the shell, so that the signals of Ray reach it.
const entrypoint = "if command -v python >/dev/null; then exec python -u " + driver.Name + "; else exec python3 -u " + driver.Name + "; fi"

// submissionOf is the n-th submission of a slice.
func submissionOf(spec schema.SliceSpec, n int, packageName string, l launch) (submission, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return submission{}, fmt.Errorf("encode slice: %w", err)
	}
	what, err := json.Marshal(l)
	if err != nil {
		return submission{}, fmt.Errorf("encode launch: %w", err)
	}
	return submission{
		Entrypoint: entrypoint, SubmissionID: idOf(spec.Name, n),
		RuntimeEnv: runtimeEnv{
			WorkingDir: "gcs://" + packageName,
			EnvVars:    map[string]string{"RAY_JOB_STOP_WAIT_TIME_S": strconv.Itoa(stopPatience)},
		},
		Metadata: map[string]string{
			keyStack: spec.Stack, keySlice: spec.Name, keyAttempt: strconv.Itoa(n),
			keySpec: string(text), keyDigest: digestOf(string(text)), keyLaunch: string(what),
		},
	}, nil
}

// withdrawalOf is the n-th submission of a slice, which withdraws those before it.
func withdrawalOf(spec schema.SliceSpec, n int) submission {
	return submission{
		Entrypoint: "true", SubmissionID: idOf(spec.Name, n),
		Metadata: map[string]string{
			keyStack: spec.Stack, keySlice: spec.Name, keyAttempt: strconv.Itoa(n), keyWithdraw: "true",
		},
	}
}
