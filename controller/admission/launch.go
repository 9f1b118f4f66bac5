// Package admission turns requests to launch jobs or to reserve capacity into pure
// changes of the state: it decodes and checks a request, gives it what its caller's
// job hands on, resolves clashes of names, and rejects what can never run. Calling
// it in the loop and waiting for what it needs are package cluster's part; whether
// there is room now, plan's.
//
// Start with [Order.Admit] and [ReservationOrder.Admit]; spec.go makes specs, fields.go
// translates messages into attributes of the language, clash.go has name clashes.
package admission

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/jobs"
	langrequest "github.com/fray-ml/fray/lang/request"
	planlaunch "github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// MaxRequestID bounds the id of a request, in bytes.
const MaxRequestID = 64

// Order is what one call asks to launch, as it came.
type Order struct {
	Caller    caller.Caller
	Requests  []*clusterapi.JobRequest
	Paths     []string // of the requests in the message
	Group     *clusterapi.JobGroup
	Pool      string // the reservation of those that name none
	RequestID string
	Sealer    schema.Sealer
}

// Launched is what came of an order.
type Launched struct {
	IDs     []string
	Existed bool // nothing was started: it was before
}

// GroupMistakes are the mistakes of a group that its request shows by itself.
func (o *Order) GroupMistakes() []langrequest.Mistake {
	var found []langrequest.Mistake
	if !schema.ValidLaunchName(o.Group.GetName()) {
		found = append(found, langrequest.Mistake{Path: "group.name", Summary: "Invalid name", Detail: fmt.Sprintf(
			"%q cannot name a group: a name is letters, digits and . _ - /, beginning and ending with a letter, a digit or an underscore, at most 200 in all.", o.Group.GetName())})
	}
	if len(o.Requests) == 0 {
		found = append(found, langrequest.Mistake{Path: "requests", Summary: "Missing attribute", Detail: "A group places jobs together: name at least one."})
	}
	names := map[string]int{}
	for i, r := range o.Requests {
		if first, twice := names[r.GetName()]; twice {
			found = append(found, langrequest.Mistake{Path: o.Paths[i] + ".name", Summary: "Declared twice", Detail: fmt.Sprintf("requests[%d] is called %s already: rename one of the two.", first, r.GetName())})
		}
		names[r.GetName()] = i
		if ns := r.GetNamespace(); ns != "" && o.Group.GetNamespace() != "" && ns != o.Group.GetNamespace() {
			found = append(found, langrequest.Mistake{Path: o.Paths[i] + ".namespace", Summary: "Two namespaces in one group", Detail: fmt.Sprintf("The group is in %s: say the same here, or nothing.", o.Group.GetNamespace())})
		}
	}
	return found
}

// inherited is what an order takes from the job that gives it.
type inherited struct {
	parent    *state.Job // nil: a user asks
	namespace string
	provider  schema.ProviderName
	region    string
}

// Admit is the change that launches. It is pure. Without a result it ends
// what has the names, and is to be tried again.
func (o *Order) Admit(doc *state.Document, now time.Time) (*state.Document, *Launched, error) {
	from, err := o.inherit(doc)
	if err != nil {
		return nil, nil, err
	}
	addrs := make([]schema.Address, len(o.Requests))
	made := &Launched{IDs: make([]string, len(o.Requests))}
	for i, r := range o.Requests {
		addrs[i] = schema.LaunchedAddress(schema.KindJob, from.namespace, o.Group.GetName(), r.GetName())
		made.IDs[i] = planlaunch.LaunchID(doc.Lineage, addrs[i], o.RequestID)
	}
	if before := doc.Jobs[addrs[0]]; before != nil && before.ID == made.IDs[0] || doc.Past[made.IDs[0]] != nil {
		made.Existed = true // this very request
		return doc, made, nil
	}
	specs, err := o.decode(doc, from, now)
	if err != nil {
		return nil, nil, err
	}
	clash, err := o.clashes(doc, addrs)
	switch {
	case err != nil:
		return nil, nil, err
	case clash.kept != nil:
		return doc, clash.kept, nil
	case len(clash.ending) > 0:
		for _, addr := range clash.ending {
			doc = planlaunch.Terminated(doc, addr, "a launch that takes its name")
		}
		return doc, nil, nil
	}
	next, err := planlaunch.Launched(doc, o.launchings(from, specs), now)
	return next, made, err
}

// inherit finds what the order takes from its caller.
func (o *Order) inherit(doc *state.Document) (*inherited, error) {
	asked, path := o.Requests[0].GetNamespace(), o.Paths[0]+".namespace"
	if o.Group.GetNamespace() != "" {
		asked, path = o.Group.GetNamespace(), "group.namespace"
	}
	namespace, err := jobs.Namespace(o.Caller, asked, path)
	if err != nil {
		return nil, err
	}
	for i, r := range o.Requests {
		if _, err := jobs.Namespace(o.Caller, r.GetNamespace(), o.Paths[i]+".namespace"); err != nil {
			return nil, err
		}
	}
	if namespace == "" {
		namespace = planlaunch.LaunchNamespace(o.Requests[0].GetName())
		if o.Group != nil {
			namespace = planlaunch.LaunchNamespace(o.Group.GetName())
		}
	}
	from := &inherited{namespace: namespace}
	if o.Caller.Kind != caller.Job {
		return from, nil
	}
	from.parent = JobOf(doc, o.Caller.JobID)
	if err := stillRuns(from.parent, o.Caller); err != nil {
		return nil, err
	}
	from.provider = from.parent.Spec.Resources.Provider
	from.region = runsIn(doc, from.parent)
	return from, nil
}

// runsIn is the region where a job runs, "" where there are none.
func runsIn(doc *state.Document, j *state.Job) string {
	if last := j.Last(); last != nil && len(last.Slices) > 0 && doc.Slices[last.Slices[0]] != nil {
		return accelerators.RegionOf(doc.Slices[last.Slices[0]].Spec.Zone)
	}
	return ""
}

// stillRuns refuses what jobs ask for that are ending.
func stillRuns(j *state.Job, who caller.Caller) error {
	switch {
	case j == nil:
		return status.Errorf(codes.FailedPrecondition, "job %s, which asks, is not known any more", who.JobID)
	case j.Status.Ended() || j.Stop || !j.Running() || j.Attempt != who.Attempt:
		return status.Errorf(codes.FailedPrecondition, "attempt %d of job %s, which asks, has ended or is ending", who.Attempt, who.JobID)
	}
	return nil
}

// launchings are the records of the order: the group first.
func (o *Order) launchings(from *inherited, specs []*schema.Job) []planlaunch.Launching {
	launch := state.Launch{Request: o.RequestID}
	if from.parent != nil {
		launch.Parent, launch.ParentAttempt = from.parent.ID, o.Caller.Attempt
	} else {
		launch.By = o.Caller.User
	}
	var all []planlaunch.Launching
	if o.Group != nil {
		of := launch
		of.Name = o.Group.GetName()
		all = append(all, planlaunch.Launching{Group: o.groupSpec(from.namespace), Launch: of})
	}
	for i, spec := range specs {
		of := launch
		of.Name, of.Detached = o.Requests[i].GetName(), o.Requests[i].GetDetached()
		if from.parent == nil {
			of.Session = o.Requests[i].GetSession()
		}
		all = append(all, planlaunch.Launching{Job: spec, Launch: of})
	}
	return all
}

func (o *Order) groupSpec(namespace string) *schema.JobGroup {
	if o.Group == nil {
		return nil
	}
	return &schema.JobGroup{
		Addr: schema.LaunchedAddress(schema.KindJobGroup, namespace, "", o.Group.GetName()), Namespace: namespace,
		SameRegion: o.Group.SameRegion == nil || o.Group.GetSameRegion(), SameZone: o.Group.GetSameZone(),
	}
}

// JobOf finds a job that is not past by its id, nil if there is none.
func JobOf(doc *state.Document, id string) *state.Job {
	for _, j := range doc.Jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}
