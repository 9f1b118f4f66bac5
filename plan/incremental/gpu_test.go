package incremental

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestGPUsOfAMachine: jobs take the GPUs of the provider in turns, and wait with the
// reason; one on whole machines of TPUs does not need any.
func TestGPUsOfAMachine(t *testing.T) {
	w := newWorld(t)
	second := newJob("b", onGPUs("h100", 6))
	w.accept(machineOf(configuration(newJob("a", onGPUs("h100", 2), onSlices(2)), second, newJob("tpu", onTPU("v5litepod-16"))), "h100", 8))
	w.run(20 * time.Second)
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	w.wantJob(jobAddr("tpu"), schema.JobRunning, 1, 0, 0)
	w.wantReason(second.Addr, "provider local: needs 6 more GPUs, 4 of 8 are in use")
	w.accept(machineOf(configuration(second), "h100", 8))
	w.run(20 * time.Second)
	w.wantJob(second.Addr, schema.JobRunning, 1, 0, 0)
}

// TestGPUsAreMadeRoomFor: a job of a higher band takes the GPUs of one that yields, and
// no others.
func TestGPUsAreMadeRoomFor(t *testing.T) {
	w := newWorld(t)
	cheap := []schema.Job{newJob("cpu", withPriority(schema.BandBatch, 0)), newJob("gpu", onGPUs("h100", 8), withPriority(schema.BandBatch, 0))}
	w.accept(machineOf(configuration(cheap...), "h100", 8))
	w.run(20 * time.Minute)
	w.accept(machineOf(configuration(append(cheap, newJob("urgent", onGPUs("h100", 1), withPriority(schema.BandProduction, 0)))...), "h100", 8))
	w.run(time.Minute)
	w.wantJob(jobAddr("urgent"), schema.JobRunning, 1, 0, 0)
	w.wantJob(jobAddr("cpu"), schema.JobRunning, 1, 0, 0)
	w.wantReason(jobAddr("gpu"), "needs 8 more GPUs, 1 of 8 are in use")
}

// TestGPUsAreChips: they count against what a namespace may have.
func TestGPUsAreChips(t *testing.T) {
	w := newWorld(t)
	space := newSpace("n", func(n *schema.Namespace) { n.MaxChips = 8 })
	w.accept(withSpaces(configuration(newJob("a", onGPUs("h100", 6), inSpace("n")), newJob("b", onGPUs("l4", 4), inSpace("n"))), space))
	w.run(20 * time.Second)
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	w.wantReason(jobAddr("b"), "needs 4 more chips, 6 of its max_chips 8 are held")
}

// TestAlternativeOfAnotherGPU: a job runs on the first alternative of which its machine has GPUs.
func TestAlternativeOfAnotherGPU(t *testing.T) {
	w := newWorld(t)
	w.accept(machineOf(configuration(newJob("a", onAny("h100:1", "t4:2"))), "t4", 8))
	w.run(20 * time.Second)
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	for name, s := range w.doc.Slices {
		if want := (schema.GPU{Type: "t4", Count: 2}); s.Spec.GPU != want {
			t.Errorf("slice %s has %s, want %s", name, s.Spec.GPU, want)
		}
	}
}

// onAny puts a job on the first of several accelerators that its machine has.
func onAny(all ...schema.Accelerator) jobOption {
	return func(j *schema.Job) {
		j.Resources.Accelerators, j.Resources.TPU, j.Resources.GPU = all, all[0].TPU(), all[0].GPU()
	}
}

// TestAlternativesOfAMachine: an alternative of GPUs that the provider does not have is
// passed, and configurations of which it has none are refused.
func TestAlternativesOfAMachine(t *testing.T) {
	w := newWorld(t)
	w.accept(machineOf(configuration(newJob("a", onAny("a100:2", "h100:2"))), "h100", 8))
	w.settle(time.Minute)
	w.wantAccelerator(jobAddr("a"), "h100:2")
	w.wantChoice(jobAddr("a"), state.ChoiceBlocked, state.PassedNowhere)

	none := machineOf(configuration(newJob("b", onAny("a100:2", "l4:1"))), "h100", 8)
	problems := capacity.Check(&none)
	if len(problems) != 1 || problems[0].Attribute != "resources.accelerators" || !strings.Contains(problems[0].Detail, "needs 2 a100 or 1 l4, and provider local has 8 h100") {
		t.Errorf("got the problems %+v, want one of the alternatives", problems)
	}
}
