// Package describe turns jobs and reservations of a view into messages of the cluster
// API. Who may see which is decided by its callers.
//
// Start with [Job] and [Reservation].
package describe

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Job is a job of a view as a message.
func Job(v *access.View, j *state.Job) *clusterapi.JobInfo {
	info := &clusterapi.JobInfo{
		JobId: j.ID, Name: jobs.NameOf(j), Namespace: j.Spec.Namespace, Address: j.Spec.Addr.String(),
		Status: statusOf(j.Status), Reason: j.Reason,
		User: j.Spec.User, Band: bandOf(j.Spec.Band), Ready: j.Ready,
		Attempt: int32(j.Attempt), Failures: int32(j.Failures), Preemptions: int32(j.Preemptions),
		SubmittedAt: stamp(j.AdmittedAt), EndedAt: stamp(j.End()),
		Group: groupOf(j), ReservationId: j.Spec.Resources.Reservation,
	}
	for _, a := range j.Spec.Resources.Accelerators {
		info.Accelerators = append(info.Accelerators, string(a))
	}
	info.Choice = choiceOf(j)
	if j.Launch != nil {
		info.ParentJobId, info.SubmittedAt = j.Launch.Parent, stamp(j.Launch.At)
	}
	if j.Status == schema.JobPending {
		info.PendingReasons = reasonsOf(v.Plan.Pending, j.Spec.Addr)
		if p := v.Doc.Paused; p != nil { // before anything that a plan would do
			info.PendingReasons = slices.Concat([]string{pause.Text(p)}, info.PendingReasons)
		}
	}
	for i := range j.Attempts {
		info.Attempts = append(info.Attempts, attemptInfo(&j.Attempts[i]))
	}
	if len(j.Attempts) > 0 {
		info.StartedAt = stamp(j.Attempts[0].StartedAt)
	}
	if last := j.Last(); last != nil {
		for i := range last.Tasks {
			info.Tasks = append(info.Tasks, taskInfo(v.Doc, i, &last.Tasks[i]))
		}
	}
	return info
}

func groupOf(j *state.Job) string {
	group := j.Spec.Addr.GroupAddress()
	if group.IsZero() {
		return ""
	}
	if group.IsLaunched() {
		return group.LaunchedName()
	}
	return group.Name
}

// reasonsOf says what an address waits for. A plan lists them in address order.
func reasonsOf(pending []plan.Pending, addr schema.Address) []string {
	i, waits := slices.BinarySearchFunc(pending, addr, func(w plan.Pending, a schema.Address) int { return w.Addr.Compare(a) })
	if !waits {
		return nil
	}
	return pending[i].Reasons
}

func attemptInfo(a *state.Attempt) *clusterapi.AttemptInfo {
	return &clusterapi.AttemptInfo{
		Number: int32(a.Number), Why: a.Why, StartedAt: stamp(a.StartedAt), EndedAt: stamp(a.EndedAt),
		Outcome: string(a.Outcome), Reason: a.Reason, Slices: a.Slices, Termination: terminationOf(a),
	}
}

// terminationOf is what the task recorded by which an attempt failed, nil if nothing.
func terminationOf(a *state.Attempt) *clusterapi.Termination {
	if a.Outcome != schema.TaskFailed {
		return nil
	}
	for i := range a.Tasks {
		if end := a.Tasks[i].Termination; end != nil && (a.EndedBy == nil || *a.EndedBy == i) {
			return terminationInfo(end)
		}
	}
	return nil
}

func terminationInfo(end *schema.Termination) *clusterapi.Termination {
	if end == nil {
		return nil
	}
	info := &clusterapi.Termination{Message: end.Message, Type: end.Type, Trace: end.Trace}
	switch end.Cause {
	case schema.TerminationActorUnmade:
		info.Cause = clusterapi.TerminationCause_TERMINATION_CAUSE_ACTOR_UNMADE
	case schema.TerminationActorInvalid:
		info.Cause = clusterapi.TerminationCause_TERMINATION_CAUSE_ACTOR_INVALID
	case schema.TerminationCallableInvalid:
		info.Cause = clusterapi.TerminationCause_TERMINATION_CAUSE_CALLABLE_INVALID
	case schema.TerminationCallableRefused:
		info.Cause = clusterapi.TerminationCause_TERMINATION_CAUSE_CALLABLE_REFUSED
	case schema.TerminationProgramMissing:
		info.Cause = clusterapi.TerminationCause_TERMINATION_CAUSE_PROGRAM_MISSING
	case schema.TerminationPackageMissing:
		info.Cause = clusterapi.TerminationCause_TERMINATION_CAUSE_PACKAGE_MISSING
	case schema.TerminationFinal:
		info.Cause = clusterapi.TerminationCause_TERMINATION_CAUSE_FINAL
	}
	return info
}

func taskInfo(doc *state.Document, index int, t *state.Task) *clusterapi.TaskInfo {
	info := &clusterapi.TaskInfo{
		Index: int32(index), State: string(t.State), Reason: t.Reason,
		Slice: t.Slice, Host: int32(t.Host), Address: t.Address, Tail: t.Tail, Termination: terminationInfo(t.Termination),
	}
	if s := doc.Slices[t.Slice]; s != nil {
		info.Zone = s.Spec.Zone
	}
	if t.ExitCode != nil {
		code := int32(*t.ExitCode)
		info.ExitCode = &code
	}
	if len(t.Ports) > 0 {
		info.Ports = make(map[string]int32, len(t.Ports))
		for name, number := range t.Ports {
			info.Ports[name] = int32(number)
		}
	}
	return info
}

// stamp is a time, nil for none.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func statusOf(s schema.JobStatus) clusterapi.JobStatus {
	switch s {
	case schema.JobPending, schema.JobScheduled: // it has not ended, and nothing of it runs
		return clusterapi.JobStatus_JOB_STATUS_PENDING
	case schema.JobRunning:
		return clusterapi.JobStatus_JOB_STATUS_RUNNING
	case schema.JobSucceeded:
		return clusterapi.JobStatus_JOB_STATUS_SUCCEEDED
	case schema.JobFailed:
		return clusterapi.JobStatus_JOB_STATUS_FAILED
	case schema.JobStopped:
		return clusterapi.JobStatus_JOB_STATUS_STOPPED
	}
	return clusterapi.JobStatus_JOB_STATUS_UNSPECIFIED
}

func bandOf(b schema.Band) clusterapi.Band {
	switch b {
	case schema.BandProduction:
		return clusterapi.Band_BAND_PRODUCTION
	case schema.BandBatch:
		return clusterapi.Band_BAND_BATCH
	case schema.BandInteractive:
	}
	return clusterapi.Band_BAND_INTERACTIVE
}
