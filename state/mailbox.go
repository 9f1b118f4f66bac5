package state

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Generation identifies one version of one object of a store. Generations of a key
// never repeat and rise with every write.
type Generation int64

// Assignment is what every host of a slice must run now. The controller writes
// it under its lease; agents obey the highest epoch, then the highest
// generation, that they have seen. Any change of generation first ends
// whatever an older one started.
type Assignment struct {
	Slice      string `json:"slice"`
	Stack      string `json:"stack,omitempty"` // the mark of the stack that wrote it
	Epoch      uint64 `json:"epoch"`
	Generation int64  `json:"generation"`
	Run        *Run   `json:"run,omitempty"` // nil: run nothing
	// Why is for people: why what an older generation started is stopped.
	Why string `json:"why,omitempty"`
	// Stop is why what an older generation started is stopped, "": it is not said.
	Stop schema.StopReason `json:"stop,omitempty"`
	// PackedTasks are placed on hosts of this slice. They are served
	// whatever the generation: a change of packed tasks ends nothing else.
	PackedTasks []PackedTask `json:"packed_tasks,omitempty"`
	// MovedTo is the location of the store where the stack is kept now: its
	// agents go there, and leave what runs as it is.
	MovedTo string `json:"moved_to,omitempty"`
}

// PackedTask is a slice that is placed on a host of another one and has a part of that
// machine. It has an assignment and reports of its own.
type PackedTask struct {
	Slice string `json:"slice"`
	Host  int    `json:"host"` // of the slice it lives on
	// Owner and Index are those of schema.SliceSpec.
	Owner  schema.Address `json:"owner"`
	Index  int            `json:"index,omitempty"`
	CPU    float64        `json:"cpu,omitempty"`
	Memory schema.Bytes   `json:"memory,omitempty"`
	Disk   schema.Bytes   `json:"disk,omitempty"`
}

// Run is one attempt of a job instance, the same for all its slices but for SliceIndex.
type Run struct {
	Job     schema.Address `json:"job"`
	JobID   string         `json:"job_id"`  // FRAY_JOB_ID
	Attempt int            `json:"attempt"` // from 1
	// Why, StartedAt and Before are what the state has of the attempt and of the
	// one before it, so that they survive the loss of the state's last write, too.
	Why       string    `json:"why,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	Before    *Ended    `json:"before,omitempty"`
	// Failures, Preemptions and UnknownEnds spent before this attempt, so that budgets
	// survive the loss of the state's last write.
	Failures    int           `json:"failures"`
	Preemptions int           `json:"preemptions"`
	UnknownEnds int           `json:"unknown_ends,omitempty"`
	Spec        schema.Job    `json:"spec"`
	Digest      schema.Digest `json:"digest"` // of Spec
	SliceIndex  int           `json:"slice_index"`
	NumSlices   int           `json:"num_slices"`
	Accelerator string        `json:"accelerator,omitempty"`
	GPU         schema.GPU    `json:"gpu,omitzero"` // of each host
	// Peers are all tasks of the attempt, all slices, in task order.
	Peers []Peer `json:"peers"`
	// Coordinator (JAX) is host 0 of slice 0, Megascale the same host for
	// jobs of several slices; both host:port.
	Coordinator string `json:"coordinator"`
	Megascale   string `json:"megascale,omitempty"`
	// ScheduledRun is the run that the attempt belongs to, of a job with a schedule.
	ScheduledRun
	// Certificates are what the hosts of this slice prove their namespace with to
	// the actors of others.
	Certificates []Certificate `json:"certificates,omitempty"`
}

// Certificate says that the identity key of a slice's host is one of a namespace.
type Certificate struct {
	Host int    `json:"host"`
	DER  []byte `json:"der"`
}

// Ended is how an attempt ended.
type Ended struct {
	Attempt int              `json:"attempt"`
	Outcome schema.TaskState `json:"outcome"`
	Reason  string           `json:"reason,omitempty"`
	EndedAt time.Time        `json:"ended_at,omitzero"`
}

// Peer is where one task runs.
type Peer struct {
	Slice   string `json:"slice"`
	Host    int    `json:"host"`
	Address string `json:"address"` // without a port
}

// HostReport is one agent's word about its host; the agent is its only writer.
type HostReport struct {
	Slice string `json:"slice"`
	Host  int    `json:"host"`
	// Boot changes whenever the agent starts; Seq rises with every report,
	// also across boots. A reader sees liveness by Seq changing, on its own
	// clock: At is by the host's clock and for people only.
	Boot    string    `json:"boot"`
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Version string    `json:"version"` // of fray
	PID     int       `json:"pid"`     // of the agent
	Address string    `json:"address"` // how peers reach this host, without a port
	// Instance is the cloud's name for the machine, where a slice's hosts have
	// no numbers of their own and the one of this report is claimed; else "".
	Instance string `json:"instance,omitempty"`
	// Free ports that this host keeps open for being the coordinator of a gang.
	CoordinatorPort int `json:"coordinator_port"`
	MegascalePort   int `json:"megascale_port"`
	// Epoch and Generation of the assignment that this host has carried out:
	// everything older has ended.
	Epoch      uint64 `json:"epoch"`
	Generation int64  `json:"generation"`
	// Notice says that the host is about to be preempted or maintained.
	Notice string      `json:"notice,omitempty"`
	Task   *TaskReport `json:"task,omitempty"` // the last task, ended or not
	// PackedTasks are the slices that this host serves besides its own.
	PackedTasks []string `json:"packed_tasks,omitempty"`
	// API is where the agent serves clusterapi's Host, host:port, and
	// Fingerprint the SHA-256 of its certificate, in hex; "": it does not.
	API         string `json:"api,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	// SigningKey is the host's public key (Ed25519): with it the controller
	// verifies the tokens of the tasks that run there.
	SigningKey []byte `json:"signing_key,omitempty"`
	// IdentityKey is the host's public key (P-256, PKIX) that who leads certifies
	// for the namespaces of its tasks.
	IdentityKey []byte `json:"identity_key,omitempty"`
	HostUsage
}

// HostUsage is what a host reports with each heartbeat for people: nothing is decided by it.
type HostUsage struct {
	// Usage is what the tasks of this host use, packed ones too, by their slices.
	Usage map[string]Usage `json:"usage,omitempty"`
	// Requests are those of the agent to the store since it started; nil: the store bills none.
	Requests *StoreRequests `json:"store_requests,omitempty"`
}

// Usage is what a task uses, the mean over some seconds.
type Usage struct {
	CPU    float64 `json:"cpu,omitempty"`    // processors
	Memory int64   `json:"memory,omitempty"` // bytes, resident; pages that processes share count for each
	// Duty is the part of the time in which the TPU chips of the host compute, the mean
	// over them; nil where that is not known.
	Duty   *float64     `json:"duty,omitempty"`
	Actors []ActorUsage `json:"actors,omitempty"` // those with the most calls
}

// ActorUsage is the calls of an actor over some seconds. Times are in seconds, from a
// call's arrival to its answer.
type ActorUsage struct {
	Name    string  `json:"name"`
	Calls   float64 `json:"calls"`  // answered in a second
	Errors  float64 `json:"errors"` // of those, with an error
	Pending int     `json:"pending,omitempty"`
	Mean    float64 `json:"mean,omitempty"`
	P50     float64 `json:"p50,omitempty"`
	P99     float64 `json:"p99,omitempty"`
}

// TaskReport is how a host's task stands.
type TaskReport struct {
	Job        schema.Address   `json:"job"`
	Attempt    int              `json:"attempt"`
	Generation int64            `json:"generation"` // of the assignment that started it
	Task       int              `json:"task"`       // index among the attempt's tasks
	State      schema.TaskState `json:"state"`
	PID        int              `json:"pid,omitempty"`
	StartedAt  time.Time        `json:"started_at,omitzero"`
	EndedAt    time.Time        `json:"ended_at,omitzero"`
	ExitCode   *int             `json:"exit_code,omitempty"`
	Signal     string           `json:"signal,omitempty"` // "SIGKILL", when a signal ended it
	// Reason says why it ended or waits, in a sentence for people.
	Reason string `json:"reason,omitempty"`
	// Started is false for a task that ended before its command ran.
	Started bool           `json:"started"`
	Ports   map[string]int `json:"ports,omitempty"`
	// Health is "" without a health check.
	Health HealthState `json:"health,omitempty"`
	Tail   []string    `json:"tail,omitempty"` // the last lines written, of a task that failed
	// BadHost says that the host looks broken rather than the program: whatever
	// runs there next would end the same way.
	BadHost bool `json:"bad_host,omitempty"`
	// Termination is what a program of fray's own recorded about why it failed, nil
	// of others.
	Termination *schema.Termination `json:"termination,omitempty"`
	// Hook is how the job's before_stop went, nil where it did not run.
	Hook *schema.HookResult `json:"before_stop,omitempty"`
}

// HealthState is a closed set.
type HealthState string

// The health states.
const (
	HealthStarting  HealthState = "starting"
	HealthHealthy   HealthState = "healthy"
	HealthUnhealthy HealthState = "unhealthy"
)

// Ready reports whether the task runs and, if it has a health check, passes it.
func (t *TaskReport) Ready() bool {
	return t.State == schema.TaskRunning && (t.Health == "" || t.Health == HealthHealthy)
}
