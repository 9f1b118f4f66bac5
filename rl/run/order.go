package run

import (
	"time"

	"github.com/fray-ml/fray/rl"
)

// Phase is how far a run is.
type Phase string

// The phases, in their order; Rewinding leads back to Loading.
const (
	Initializing    Phase = "initializing"
	Loading         Phase = "loading"
	Syncing         Phase = "syncing"
	ValidatingFirst Phase = "validating_first"
	Starting        Phase = "starting"
	Running         Phase = "running"
	Validating      Phase = "validating"
	Rewinding       Phase = "rewinding"
	Stopping        Phase = "stopping"
	Ended           Phase = "ended"
)

// Verb is what an Order does.
type Verb string

// The verbs.
const (
	None            Verb = ""                 // wait for the next observation
	Initialize      Verb = "initialize"       // train workers set up their services
	PrepareFresh    Verb = "prepare_fresh"    // train workers save the initial weights for rollouts
	Load            Verb = "load_checkpoint"  // of Path: train workers, data loader, versions of weights
	SyncWeights     Verb = "sync_weights"     // to the inference services
	StartValidation Verb = "start_validation" // rollout workers take tasks of the validation
	EndValidation   Verb = "end_validation"   // metrics, workers back, then the locks of Tag
	StartWorkers    Verb = "start_workers"    // those of Modules, all if there are none
	Release         Verb = "release"          // unlock the loader, since no batch is left that would
	Rewind          Verb = "rewind"           // no worker goes on, nor is any validating
	StopWorkers     Verb = "stop_workers"
	Conclude        Verb = "conclude" // the run has ended
)

// Order is what is to be done now.
type Order struct {
	Verb    Verb
	Path    string // of the checkpoint
	Step    int64
	Epoch   int
	Tag     rl.ModelTag
	Modules []string
	Reason  string
}

// Observation is what the controller sees. Its fields are read in the order in which data flows (loader, trajectory
// pools, train batch pools, tracker), so that what moves on meanwhile is seen at the later one.
type Observation struct {
	// Problem is why not all could be read: then fields are zero that have not been; "": all is read that the phase needs.
	Problem           string
	Step              int64
	Trained           int64 // updates that were reported to weight sync, after their checkpoints
	Loader            rl.LoaderStatus
	PoolsEmpty        bool // no trajectory and no batch that is not acknowledged
	TrainBatchesEmpty bool
	Quiescent         bool // no activity
	// Settled is that no weights are being copied, no copy has failed and no validation is due.
	Settled bool
	Waiting []rl.ModelTag // for a validation
	// Complete is that the validation's tasks are all done.
	Complete bool
	Health   rl.Health
	Critical int    // recent errors after which a run cannot go on
	Message  string // of Health
	// Checkpoints are the names in the directory of checkpoints; Missing is that ResumePath is no checkpoint.
	Checkpoints []string
	Missing     bool
	Gone        map[string]time.Duration // modules that do not answer, and for how long
	// Restarted are modules with a new process since they were last started, sorted.
	Restarted []string
}
