package ray

// The messages of Ray's dashboard that fray uses, of version 4 of the Jobs API (Ray 2.60).

// jobStatus is the status of a job.
type jobStatus string

const (
	jobPending   jobStatus = "PENDING"
	jobRunning   jobStatus = "RUNNING"
	jobStopped   jobStatus = "STOPPED"
	jobSucceeded jobStatus = "SUCCEEDED"
	jobFailed    jobStatus = "FAILED"
)

func (s jobStatus) ended() bool { return s == jobStopped || s == jobSucceeded || s == jobFailed }

// jobError is why a job failed, "" where Ray does not state it.
type jobError string

const (
	errorRuntimeEnv     jobError = "RUNTIME_ENV_SETUP_FAILURE"
	errorStartTimeout   jobError = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT" // no node had room for 900 s
	errorStartFailure   jobError = "JOB_SUPERVISOR_ACTOR_START_FAILURE"
	errorUnschedulable  jobError = "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"
	errorSupervisorDied jobError = "JOB_SUPERVISOR_ACTOR_DIED"
	errorSupervisor     jobError = "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE"
	errorEntrypoint     jobError = "JOB_ENTRYPOINT_COMMAND_ERROR"
	errorEntrypointGone jobError = "JOB_ENTRYPOINT_COMMAND_START_ERROR"
)

// job is one job as Ray lists it. Jobs that were not submitted, as those of interactive drivers,
// have no submission id.
type job struct {
	SubmissionID string            `json:"submission_id"`
	Status       jobStatus         `json:"status"`
	Message      string            `json:"message"`
	ErrorType    jobError          `json:"error_type"`
	StartTime    int64             `json:"start_time"` // ms since 1970, of the submission
	EndTime      int64             `json:"end_time"`   // the same; 0: it has not ended
	Metadata     map[string]string `json:"metadata"`
	ExitCode     *int              `json:"driver_exit_code"`
}

// submission is a request to run a job.
type submission struct {
	Entrypoint   string            `json:"entrypoint"`
	SubmissionID string            `json:"submission_id"`
	RuntimeEnv   runtimeEnv        `json:"runtime_env"`
	Metadata     map[string]string `json:"metadata"`
}

type runtimeEnv struct {
	WorkingDir string            `json:"working_dir,omitempty"`
	EnvVars    map[string]string `json:"env_vars,omitempty"`
}

// version is the answer of /api/version, by which Ray is recognized.
type version struct {
	Version    string `json:"version"`
	RayVersion string `json:"ray_version"`
	Session    string `json:"session_name"` // of the cluster, another one after each start of its head
}

// listing is an answer of the state API.
type listing[T any] struct {
	Result bool   `json:"result"`
	Msg    string `json:"msg"`
	Data   struct {
		Result struct {
			Total    int    `json:"total"`
			Returned int    `json:"num_after_truncation"`
			Partial  string `json:"partial_failure_warning"`
			Result   []T    `json:"result"`
		} `json:"result"`
	} `json:"data"`
}

// groupState is the state of a placement group.
type groupState string

const (
	groupPending      groupState = "PENDING"
	groupPrepared     groupState = "PREPARED"
	groupCreated      groupState = "CREATED"
	groupRemoved      groupState = "REMOVED"
	groupRescheduling groupState = "RESCHEDULING"
)

// placementGroup is one placement group as the state API lists it.
type placementGroup struct {
	Name  string     `json:"name"`
	State groupState `json:"state"`
}

// node is one node as the state API lists it.
type node struct {
	State string             `json:"state"` // "ALIVE" or "DEAD"
	Total map[string]float64 `json:"resources_total"`
}
