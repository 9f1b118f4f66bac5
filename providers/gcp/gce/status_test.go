package gce

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/schema"
)

func TestInstanceStatesAsPhases(t *testing.T) {
	for _, test := range []struct {
		status, model string
		phase         schema.SlicePhase
		cause         schema.ErrorKind
	}{
		{"PENDING", "SPOT", schema.SliceCreating, ""},
		{"PROVISIONING", "SPOT", schema.SliceCreating, ""},
		{"STAGING", "SPOT", schema.SliceCreating, ""},
		{"REPAIRING", "STANDARD", schema.SliceCreating, ""},
		{"SOMETHING_NEW", "SPOT", schema.SliceCreating, ""},
		{"", "SPOT", schema.SliceCreating, ""},
		{"RUNNING", "SPOT", schema.SliceReady, ""},
		{"PENDING_STOP", "SPOT", schema.SliceDead, schema.ErrorPreempted},
		{"STOPPING", "SPOT", schema.SliceDead, schema.ErrorPreempted},
		{"STOPPING", "STANDARD", schema.SliceDead, ""},
		{"STOPPED", "STANDARD", schema.SliceDead, ""},
		{"SUSPENDING", "STANDARD", schema.SliceDead, ""},
		{"SUSPENDED", "STANDARD", schema.SliceDead, ""},
		{"DEPROVISIONING", "SPOT", schema.SliceDead, schema.ErrorPreempted},
		{"TERMINATED", "SPOT", schema.SliceDead, schema.ErrorPreempted},
		{"TERMINATED", "STANDARD", schema.SliceDead, ""},
		{"TERMINATED", "FLEX_START", schema.SliceDead, schema.ErrorPreempted},
	} {
		t.Run(test.status+" "+test.model, func(t *testing.T) {
			machine := &computeapi.Instance{Status: test.status, InstanceProperties: computeapi.InstanceProperties{Scheduling: computeapi.Scheduling{ProvisioningModel: test.model}}}
			got := machineStatus(gcetest.Spec("one"), machine, false)
			if got.Phase != test.phase || got.Cause != test.cause {
				t.Errorf("phase %s, cause %q; want %s, %q", got.Phase, got.Cause, test.phase, test.cause)
			}
			if (got.Reason == "") != (got.Phase == schema.SliceReady) {
				t.Errorf("reason %q of a slice that is %s", got.Reason, got.Phase)
			}
			if got := machineStatus(gcetest.Spec("one"), machine, true); got.Phase != schema.SliceDeleting {
				t.Errorf("while it is deleted it is %s", got.Phase)
			}
		})
	}
}

// grouped is a group of four machines.
type grouped struct {
	states     []string
	template   bool // without a group
	target     int32
	stable     bool
	creating   int32
	recreating int32
	bulk       *computeapi.BulkOperation
	age        time.Duration
	flex       bool
	note       note
}

func (g grouped) group() *machineGroup {
	spec := gcetest.Spec("many", gcetest.OfTPU("v5p-32", 4), gcetest.Spot)
	if g.flex {
		spec = gcetest.Spec("many", gcetest.OfTPU("v5p-32", 4), gcetest.FlexStart)
	}
	f := &machineGroup{spec: spec, template: &computeapi.InstanceTemplate{}, age: g.age, note: g.note}
	if !g.template {
		f.group = &computeapi.InstanceGroupManager{
			TargetSize:     &g.target,
			CurrentActions: computeapi.GroupActions{Creating: g.creating, Recreating: g.recreating},
			Status:         computeapi.GroupStatus{IsStable: g.stable, BulkInstanceOperation: g.bulk},
		}
	}
	for _, state := range g.states {
		f.machines = append(f.machines, &computeapi.Instance{Status: state, InstanceProperties: computeapi.InstanceProperties{Scheduling: computeapi.Scheduling{ProvisioningModel: "SPOT"}}})
	}
	return f
}

func bulkProblem(code, message string) *computeapi.BulkOperation {
	return &computeapi.BulkOperation{
		InProgress: true,
		LastProgressCheck: computeapi.ProgressCheck{
			Error: computeapi.ErrorList{Errors: []computeapi.Error{{Code: code, Message: message}}},
		},
	}
}

func TestGroupsAsPhases(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	up := []string{"RUNNING", "RUNNING", "RUNNING", "RUNNING"}
	stockout := bulkProblem("ZONE_RESOURCE_POOL_EXHAUSTED", "no more capacity")
	ended := &computeapi.BulkOperation{InProgress: false}
	for _, test := range []struct {
		name   string
		group  grouped
		phase  schema.SlicePhase // "": not listed
		cause  schema.ErrorKind
		down   int
		reason string
	}{
		{"all up", grouped{states: up, target: 4, stable: true}, schema.SliceReady, "", 0, ""},
		{"all up although it says that it is busy", grouped{states: up, target: 4, creating: 2}, schema.SliceReady, "", 0, ""},
		{"coming", grouped{states: []string{"STAGING", "STAGING", "RUNNING", "PROVISIONING"}, target: 4, creating: 3}, schema.SliceCreating, "", 0, "1 of 4"},
		{"hosts boot before their siblings", grouped{states: up[:3], target: 4, creating: 4}, schema.SliceCreating, "", 0, "3 of 4"},
		{"none yet", grouped{target: 4, creating: 4}, schema.SliceCreating, "", 0, "0 of 4"},
		{"just made and idle", grouped{target: 4, stable: true, age: time.Second, note: note{absent: 5}}, schema.SliceCreating, "", 0, "0 of 4"},
		{"one machine preempted", grouped{states: append([]string{"STOPPING"}, up[1:]...), target: 4}, schema.SliceDead, schema.ErrorPreempted, 0, "lost"},
		{"one machine preempted before all were up", grouped{states: []string{"TERMINATED", "STAGING"}, target: 4, creating: 3}, schema.SliceDead, schema.ErrorPreempted, 0, "lost"},
		{"one gone after all were up, seen once", grouped{states: up[:3], target: 4, note: note{complete: true, absent: 1}}, schema.SliceCreating, "", 0, "3 of 4"},
		{"one gone after all were up, seen twice", grouped{states: up[:3], target: 4, note: note{complete: true, absent: 2}}, schema.SliceDead, schema.ErrorPreempted, 0, "1 of 4 machines are gone"},
		{"all gone, without a note", grouped{target: 4, bulk: ended, age: time.Hour, note: note{absent: 2}}, schema.SliceDead, schema.ErrorPreempted, 0, "4 of 4"},
		{"one gone, without a note", grouped{states: up[:3], target: 4, stable: true, note: note{absent: 2}}, schema.SliceDead, schema.ErrorPreempted, 0, "1 of 4"},
		{"repaired one by one", grouped{states: append([]string{"STAGING"}, up[1:]...), target: 4, recreating: 1, note: note{complete: true, absent: 2}}, schema.SliceDead, schema.ErrorPreempted, 0, ""},
		{"stockout", grouped{target: 4, creating: 4, bulk: stockout}, schema.SliceDead, schema.ErrorCapacity, 0, "no more capacity"},
		{"stockout, said when asked", grouped{target: 4, creating: 4, note: note{problem: &apierror.OperationError{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}}}, schema.SliceDead, schema.ErrorCapacity, 0, ""},
		{"quota", grouped{target: 4, creating: 4, bulk: bulkProblem("QUOTA_EXCEEDED", "Quota 'X' exceeded")}, schema.SliceDead, schema.ErrorQuota, 0, ""},
		{"problem that passes", grouped{target: 4, creating: 4, bulk: bulkProblem("INTERNAL_ERROR", "Internal error.")}, schema.SliceCreating, "", 0, "Internal error"},
		{"old problem of one that was up", grouped{states: append([]string{"REPAIRING"}, up[1:]...), target: 4, bulk: stockout, note: note{complete: true}}, schema.SliceCreating, "", 0, ""},
		{"no group", grouped{template: true}, schema.SliceCreating, "", 4, "cut short"},
		{"no group yet", grouped{template: true, note: note{askedAt: now.Add(-askPatience)}}, "", "", 0, ""},
		{"no group for long", grouped{template: true, note: note{askedAt: now.Add(-askPatience - 1)}}, schema.SliceCreating, "", 4, "cut short"},
		{"no group will be", grouped{template: true, note: note{failed: &apierror.OperationError{Code: "QUOTA_EXCEEDED", Message: "too many"}}}, schema.SliceDead, schema.ErrorQuota, 0, "too many"},
		{"being deleted", grouped{states: up, target: 4, note: note{deletedAt: now}}, schema.SliceDeleting, "", 0, ""},
		{"being deleted for long", grouped{states: up, target: 4, note: note{deletedAt: now.Add(-deletePatience - 1)}}, schema.SliceReady, "", 0, ""},
		{"flex-start, not asked for", grouped{flex: true}, schema.SliceCreating, "", 4, "not asked for"},
		{"flex-start, waiting", grouped{flex: true, note: note{resized: true}}, schema.SliceCreating, "", 0, "0 of 4"},
		{"flex-start waits for capacity", grouped{flex: true, note: note{resized: true, problem: &apierror.OperationError{Code: "ZONE_RESOURCE_POOL_EXHAUSTED", Message: "none"}}}, schema.SliceCreating, "", 0, "none"},
		{"flex-start that failed", grouped{flex: true, note: note{resized: true, problem: &infeasibleError{apierror.Errorf(schema.ErrorCapacity, "gave up")}}}, schema.SliceDead, schema.ErrorCapacity, 0, "gave up"},
		{"flex-start, up", grouped{flex: true, states: up, target: 4}, schema.SliceReady, "", 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, listed := groupStatus(test.group.group(), now)
			if listed != (test.phase != "") {
				t.Fatalf("listed %t as %+v", listed, got)
			}
			if !listed {
				return
			}
			if waits := test.group.flex && len(test.group.states) == 0 && got.Phase == schema.SliceCreating && test.down == 0; got.Waiting != waits {
				t.Errorf("waiting is %t, want %t: only flex-start waits for machines", got.Waiting, waits)
			}
			if got.Phase != test.phase || got.Cause != test.cause || len(got.Down) != test.down || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("got %s, cause %q, %d down: %s; want %s, %q, %d: %s",
					got.Phase, got.Cause, len(got.Down), got.Reason, test.phase, test.cause, test.down, test.reason)
			}
		})
	}
}

func TestOperationErrorsAreReadFromTheOperation(t *testing.T) {
	for _, test := range []struct {
		name string
		op   *computeapi.Operation
		over bool
		kind schema.ErrorKind
	}{
		{"open", &computeapi.Operation{Status: computeapi.OperationRunning}, false, ""},
		{"pending", &computeapi.Operation{Status: "PENDING"}, false, ""},
		{"done", &computeapi.Operation{Status: computeapi.OperationDone}, true, ""},
		{"stockout", gcetest.FailedOperation("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone does not have enough resources"), true, schema.ErrorCapacity},
		{"stockout with details", gcetest.FailedOperation("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "…"), true, schema.ErrorCapacity},
		{"quota", gcetest.FailedOperation("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-west4."), true, schema.ErrorQuota},
		{"preempted on the way", gcetest.FailedOperation("UNSUPPORTED_OPERATION", "Instance was preempted"), true, schema.ErrorPreempted},
		{"reservation", gcetest.FailedOperation("", "Insufficient reserved capacity"), true, schema.ErrorReservation},
		{"status without words", &computeapi.Operation{Status: computeapi.OperationDone, HTTPErrorStatusCode: int32(503)}, true, schema.ErrorUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			over, err := isOver(test.op)
			if over != test.over || apierror.KindOf(err) != test.kind {
				t.Errorf("over %t with %v of kind %q; want %t, %q", over, err, apierror.KindOf(err), test.over, test.kind)
			}
			if e, ok := errors.AsType[*apierror.OperationError](err); ok && e.Message == "" {
				t.Errorf("it has no words: %+v", e)
			}
		})
	}
}
