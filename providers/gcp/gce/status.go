package gce

import (
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// machineState is a closed set of what the states of an instance mean for its
// slice.
type machineState int

const (
	machineComing machineState = iota
	machineUp
	machineEnded // and will not come back by itself
)

// machineStateOf reads the status of an instance. An unknown one is
// taken for one on its way: what may be alive is not called dead.
func machineStateOf(status string) machineState {
	switch status {
	case "RUNNING":
		return machineUp
	case "STOPPING", "PENDING_STOP", "STOPPED", "TERMINATED", "SUSPENDING", "SUSPENDED", "DEPROVISIONING":
		return machineEnded
	}
	return machineComing // PENDING PROVISIONING STAGING REPAIRING
}

// machineStatus is a slice of one machine as an inventory lists it.
func machineStatus(spec schema.SliceSpec, machine *computeapi.Instance, going bool) schema.SliceStatus {
	status := schema.SliceStatus{Spec: spec, CreatedAt: createdAt(machine.CreationTimestamp)}
	if going {
		status.Phase, status.Reason = schema.SliceDeleting, "its instance is "+machine.Status
		return status
	}
	switch machineStateOf(machine.Status) {
	case machineUp:
		status.Phase = schema.SliceReady
		status.Edited = mark.Edited(&spec, machine.Labels, machine.Tags.Items)
	case machineComing:
		status.Phase, status.Reason = schema.SliceCreating, "its instance is "+machine.Status
		status.Waiting = spec.Cloud.Provisioning == schema.ProvisioningFlexStart && machine.Status != "STAGING"
	case machineEnded:
		status.Phase = schema.SliceDead
		status.Cause, status.Reason = whyEnded(machine)
	}
	return status
}

// whyEnded is why an instance ended. Only one that may be preempted is taken to
// have been; a person or its operating system may have stopped it just as well, and then
// too it is made anew.
func whyEnded(machine *computeapi.Instance) (schema.ErrorKind, string) {
	model := machine.Scheduling.ProvisioningModel
	reason := "its instance is " + machine.Status
	if message := machine.StatusMessage; message != "" {
		reason += ": " + message
	}
	switch {
	case model == "SPOT" || machine.Scheduling.Preemptible:
		return schema.ErrorPreempted, reason + ": preempted"
	case model == "FLEX_START":
		return schema.ErrorPreempted, reason + ": it has had its time"
	}
	return "", reason
}

// machineGroup is a slice of several machines as it was found.
type machineGroup struct {
	spec     schema.SliceSpec
	template *computeapi.InstanceTemplate
	group    *computeapi.InstanceGroupManager // nil: not yet, or not any more
	machines []*computeapi.Instance
	age      time.Duration // of the group
	note     note          // a copy of what is known besides
}

// settling is how long a new group may show that nothing is being done for it.
const settling = 5 * time.Minute

// count is how many of its machines are up, how many are there, and the first
// that has ended.
func (f *machineGroup) count() (up, there int, ended *computeapi.Instance) {
	for _, machine := range f.machines {
		switch machineStateOf(machine.Status) {
		case machineUp:
			up++
		case machineComing:
		case machineEnded:
			if ended == nil {
				ended = machine
			}
			continue
		}
		there++
	}
	return up, there, ended
}

// unfinished returns what is still to be asked for, "" for nothing.
func (f *machineGroup) unfinished() string {
	switch {
	case f.group == nil:
		return "its instance group was not asked for"
	case byResize(f.spec) && !f.note.resized && f.group.Size() == 0 && len(f.machines) == 0:
		return "its machines were not asked for"
	}
	return ""
}

// askPatience is how long a group in the making stays unlisted after the last
// Create, which carries it on and is only repeated while it is not listed.
const askPatience = 2 * time.Minute

// groupStatus is a slice of several machines as an inventory lists it, false
// while it is to be asked for again.
func groupStatus(f *machineGroup, now time.Time) (schema.SliceStatus, bool) {
	status := schema.SliceStatus{Spec: f.spec, Phase: schema.SliceCreating, CreatedAt: createdAt(f.template.CreationTimestamp)}
	if f.note.isGoing(now) {
		status.Phase, status.Reason = schema.SliceDeleting, "its parts are being deleted"
		return status, true
	}
	if f.note.failed != nil && f.group == nil {
		status.Phase, status.Reason, status.Cause = schema.SliceDead, apierror.Brief(f.note.failed).Error(), apierror.KindOf(f.note.failed)
		return status, true
	}
	if missing := f.unfinished(); missing != "" {
		if !f.note.askedAt.IsZero() && now.Sub(f.note.askedAt) <= askPatience {
			return status, false
		}
		// A job that wants it asks again; else it is deleted.
		status.Reason = "its creation was cut short: " + missing
		for n := range f.spec.Hosts {
			status.Down = append(status.Down, n)
		}
		return status, true
	}
	f.judge(&status)
	return status, true
}

// judge sets the status of a group whose machines have been asked for.
func (f *machineGroup) judge(status *schema.SliceStatus) {
	up, there, ended := f.count()
	hosts := f.spec.Hosts
	switch {
	case ended != nil:
		status.Phase = schema.SliceDead
		status.Cause, status.Reason = whyEnded(ended)
		status.Reason = fmt.Sprintf("one of %d machines is lost: %s", hosts, status.Reason)
	case up >= hosts:
		status.Phase = schema.SliceReady
	case f.isBroken(up, there):
		status.Phase, status.Cause = schema.SliceDead, f.lostCause()
		status.Reason = fmt.Sprintf("%d of %d machines are gone", hosts-there, hosts)
	case f.infeasible() != nil:
		status.Phase, status.Cause = schema.SliceDead, apierror.KindOf(f.infeasible())
		status.Reason = apierror.Brief(f.infeasible()).Error()
	default:
		status.Reason = fmt.Sprintf("%d of %d machines are up", up, hosts)
		status.Waiting = byResize(f.spec) && there == 0
		if problem := f.problem(); problem != nil {
			status.Reason += "; " + apierror.Brief(problem).Error()
		}
	}
}

// lostCause is why machines are gone that were not deleted.
func (f *machineGroup) lostCause() schema.ErrorKind {
	if f.spec.Preemptible || byResize(f.spec) {
		return schema.ErrorPreempted
	}
	return ""
}

// isBroken reports that machines of a group that had all of them are gone, or are
// made again one by one, which their slice does not survive. To see it once is not
// enough, for what is live must not be called dead.
func (f *machineGroup) isBroken(up, there int) bool {
	return f.lacks(up, there) && f.note.absent > 1
}

func (f *machineGroup) lacks(up, there int) bool {
	actions := f.group.CurrentActions
	repaired := actions.Recreating+actions.Restarting > 0
	switch {
	case up >= f.spec.Hosts:
		return false
	case f.note.complete, repaired:
		return there < f.spec.Hosts || repaired
	}
	return there < f.spec.Hosts && f.group.Size() > 0 && f.isIdle() && (up > 0 || f.age > settling)
}

// isIdle reports that nothing is being done to get the group its machines.
func (f *machineGroup) isIdle() bool {
	status, actions := f.group.Status, f.group.CurrentActions
	bulk := status.BulkInstanceOperation
	return status.IsStable || bulk != nil && !bulk.InProgress && actions.Creating+actions.CreatingWithoutRetries == 0
}

// problem is the last error that the service had with a group's machines.
func (f *machineGroup) problem() error {
	if bulk := f.group.Status.BulkInstanceOperation; bulk != nil && len(bulk.LastProgressCheck.Error.Errors) > 0 {
		return failureOf(bulk.LastProgressCheck.Error.Errors)
	}
	return f.note.problem
}

// infeasible is the error that ends the making of a group. The service itself goes
// on trying; plan asks elsewhere for what cannot be had here now. A flex-start
// group is meant to wait for capacity.
func (f *machineGroup) infeasible() error {
	if f.note.complete {
		return nil
	}
	problem := f.problem()
	if problem == nil {
		return nil
	}
	switch apierror.KindOf(problem) {
	case schema.ErrorCapacity, schema.ErrorReservation:
		if _, final := errors.AsType[*infeasibleError](problem); byResize(f.spec) && !final {
			return nil
		}
		return problem
	case schema.ErrorQuota, schema.ErrorInvalid, schema.ErrorPermission, schema.ErrorPreempted:
		return problem
	case schema.ErrorConflict, schema.ErrorRate, schema.ErrorUnavailable:
	}
	return nil
}

// infeasibleError is one after which the service does not try again.
type infeasibleError struct{ err error }

func (e *infeasibleError) Error() string { return e.err.Error() }

func (e *infeasibleError) Unwrap() error { return e.err }
