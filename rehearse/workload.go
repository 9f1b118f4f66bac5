package rehearse

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Workload is what a job is taken to do in a rehearsal.
type Workload struct {
	Job string // its address; one without a key stands for all instances
	// Work is how much there is to do; 0: it runs for ever.
	Work time.Duration
	// CheckpointEvery is how much work is at most lost by a restart; 0: all of it.
	CheckpointEvery time.Duration
	// Startup is from the start of the tasks to the first new work: imports,
	// compilation, the checkpoint that is read.
	Startup time.Duration
}

// DefaultWorkload is that of jobs of which nothing is said: it runs for ever,
// with a checkpoint every half hour, and takes four minutes to get going.
func DefaultWorkload() Workload {
	return Workload{CheckpointEvery: 30 * time.Minute, Startup: 4 * time.Minute}
}

// workloadOf is the workload of a job: its own, that of its base address, that
// of "" or the default.
func workloadOf(all []Workload, addr schema.Address) Workload {
	for _, name := range []string{addr.String(), addr.Base().String(), ""} {
		for _, w := range all {
			if w.Job == name {
				return w
			}
		}
	}
	return DefaultWorkload()
}
