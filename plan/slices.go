package plan

import (
	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// The life of a slice: an entry in the state when a job or pool is given it, asked
// for (AskedAt) once its mailbox holds nothing of a former slice of that name,
// listed by its provider (Seen), born when all hosts have reported, terminating when
// it is to go whichever job wants it, and out of the state when it is gone unwanted.

// OwnSlice is the spec of the index-th slice made for a job alone, wherever it
// will be, see [Located].
func OwnSlice(stack string, job *schema.Job, index int) schema.SliceSpec {
	spec := UnnamedSlice(stack, job, index)
	spec.Name = SliceName(stack, job.Addr, index)
	return spec
}

// UnnamedSlice is OwnSlice without a name, for callers that name it otherwise.
func UnnamedSlice(stack string, job *schema.Job, index int) schema.SliceSpec {
	r := &job.Resources
	spec := schema.SliceSpec{
		Stack: stack, Owner: job.Addr, Index: index,
		Provider: r.Provider, TPU: r.TPU, GPU: r.GPU, CPU: r.CPU, Memory: r.Memory, Disk: r.Disk,
		MachineType: r.MachineType, Preemptible: r.Preemptible, Hosts: hostsOf(r.TPU), Cloud: r.Cloud,
	}
	if r.Provider == schema.ProviderGCP {
		spec.Cloud.Live = WithLabels(spec.Cloud.Live, job.Labels)
	}
	return spec
}

// PoolSlice is the spec of the index-th slice of a reservation, wherever it will be.
func PoolSlice(stack string, r *schema.Reservation, index int) schema.SliceSpec {
	return schema.SliceSpec{
		Name: SliceName(stack, r.Addr, index), Stack: stack, Owner: r.Addr, Index: index,
		Provider: r.Provider, TPU: r.Min.TPU, GPU: r.Min.GPU, CPU: r.Min.CPU, Memory: r.Min.Memory, Disk: r.Min.Disk,
		Preemptible: r.Preemptible, Hosts: hostsOf(r.Min.TPU), Cloud: r.Cloud,
	}
}

// hostsOf is the number of hosts of a slice of a TPU type; one without a TPU.
func hostsOf(tpu string) int {
	if tpu == "" {
		return 1
	}
	acc, err := accelerators.Parse(tpu)
	if err != nil {
		return 1
	}
	return acc.Hosts
}
