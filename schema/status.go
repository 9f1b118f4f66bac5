package schema

// JobStatus is how a job instance stands, as its users see it.
type JobStatus string

// The job statuses.
const (
	JobPending   JobStatus = "pending"
	JobRunning   JobStatus = "running"
	JobSucceeded JobStatus = "succeeded"
	JobFailed    JobStatus = "failed"
	JobStopped   JobStatus = "stopped"
	// JobScheduled is a job with a schedule between its runs.
	JobScheduled JobStatus = "scheduled"
)

// Ended reports whether the job runs no more until it changes, or its next run is due.
func (s JobStatus) Ended() bool {
	switch s {
	case JobSucceeded, JobFailed, JobStopped, JobScheduled:
		return true
	case JobPending, JobRunning:
	}
	return false
}

// Outcome is how the last attempt of a job ended that has ended.
func (s JobStatus) Outcome() TaskState {
	switch s {
	case JobSucceeded:
		return TaskSucceeded
	case JobFailed:
		return TaskFailed
	case JobStopped, JobPending, JobRunning, JobScheduled:
	}
	return TaskKilled
}

// TaskState is how one task of an attempt stands; an attempt's outcome is one too.
type TaskState string

// The task states.
const (
	TaskPending       TaskState = "pending"
	TaskAssigned      TaskState = "assigned"
	TaskBuilding      TaskState = "building"
	TaskRunning       TaskState = "running"
	TaskSucceeded     TaskState = "succeeded"
	TaskFailed        TaskState = "failed"        // the program's own fault
	TaskKilled        TaskState = "killed"        // because fray was told to
	TaskWorkerFailed  TaskState = "worker_failed" // host, agent or its environment
	TaskPreempted     TaskState = "preempted"
	TaskUnschedulable TaskState = "unschedulable"
	// TaskExitUnknown is the end of a task whose exit status is not recorded:
	// neither its program nor its host is to blame for what is not known.
	TaskExitUnknown TaskState = "exit_unknown"
)

// Ended reports whether no process of the task is left.
func (s TaskState) Ended() bool {
	switch s {
	case TaskSucceeded, TaskFailed, TaskKilled, TaskWorkerFailed, TaskPreempted, TaskUnschedulable, TaskExitUnknown:
		return true
	case TaskPending, TaskAssigned, TaskBuilding, TaskRunning:
	}
	return false
}
