package gcetest

import (
	"time"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/schema"
)

// Spec is a slice of one plain machine of the stack stack-a; change makes it another.
func Spec(name string, change ...func(*schema.SliceSpec)) schema.SliceSpec {
	spec := schema.SliceSpec{
		Name: name, Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"}, Provider: schema.ProviderGCP,
		CPU: 2, Memory: 4 << 30, Zone: "us-west4-a", Hosts: 1, Cloud: schema.CloudSpec{Engine: schema.EngineGCE},
	}
	for _, each := range change {
		each(&spec)
	}
	return spec
}

// OfTPU makes it a slice of a TPU type.
func OfTPU(tpu string, hosts int) func(*schema.SliceSpec) {
	return func(s *schema.SliceSpec) { s.TPU, s.Hosts, s.CPU, s.Memory = tpu, hosts, 0, 0 }
}

// OfGPUs makes it a machine with GPUs.
func OfGPUs(kind string, count int) func(*schema.SliceSpec) {
	return func(s *schema.SliceSpec) {
		s.GPU, s.CPU, s.Memory, s.Zone = schema.GPU{Type: kind, Count: count}, 0, 0, "us-central1-a"
	}
}

// Spot makes it preemptible.
func Spot(s *schema.SliceSpec) { s.Preemptible = true }

// FlexStart makes it one that waits for capacity and runs for an hour.
func FlexStart(s *schema.SliceSpec) {
	s.Cloud.Provisioning, s.Cloud.MaxRun = schema.ProvisioningFlexStart, schema.Duration(time.Hour)
}

// FailedOperation is an operation that has ended with an error.
func FailedOperation(code, message string) *computeapi.Operation {
	return &computeapi.Operation{
		Status: computeapi.OperationDone, HTTPErrorStatusCode: int32(400), HTTPErrorMessage: "BAD REQUEST",
		Error: computeapi.ErrorList{Errors: []computeapi.Error{{Code: code, Message: message}}},
	}
}
