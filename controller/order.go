package controller

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

// maxLaunchRequestID bounds what a call is told again by, in bytes.
const maxLaunchRequestID = 64

// order is what one call asks to launch, as it came.
type order struct {
	who       caller.Caller
	requests  []*clusterapi.JobRequest
	paths     []string // of the requests in the message
	group     *clusterapi.JobGroup
	pool      string // the reservation of those that name none
	requestID string
	sealer    schema.Sealer
}

// launched is what came of an order.
type launched struct {
	ids     []string
	existed bool // nothing was started: it was before
}

func (o *order) groupMistakes() []langrequest.Mistake {
	var found []langrequest.Mistake
	if !schema.ValidLaunchName(o.group.GetName()) {
		found = append(found, langrequest.Mistake{Path: "group.name", Summary: "Invalid name", Detail: fmt.Sprintf(
			"%q cannot name a group: a name is letters, digits and . _ - /, beginning and ending with a letter, a digit or an underscore, at most 200 in all.", o.group.GetName())})
	}
	if len(o.requests) == 0 {
		found = append(found, langrequest.Mistake{Path: "requests", Summary: "Missing attribute", Detail: "A group places jobs together: name at least one."})
	}
	names := map[string]int{}
	for i, r := range o.requests {
		if first, twice := names[r.GetName()]; twice {
			found = append(found, langrequest.Mistake{Path: o.paths[i] + ".name", Summary: "Declared twice", Detail: fmt.Sprintf("requests[%d] is called %s already: rename one of the two.", first, r.GetName())})
		}
		names[r.GetName()] = i
		if ns := r.GetNamespace(); ns != "" && o.group.GetNamespace() != "" && ns != o.group.GetNamespace() {
			found = append(found, langrequest.Mistake{Path: o.paths[i] + ".namespace", Summary: "Two namespaces in one group", Detail: fmt.Sprintf("The group is in %s: say the same here, or nothing.", o.group.GetNamespace())})
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

// carryOut is the change that launches. It is pure. Without a result it ends
// what has the names, and is to be tried again.
func (o *order) carryOut(doc *state.Document, now time.Time) (*state.Document, *launched, error) {
	from, err := o.inherit(doc)
	if err != nil {
		return nil, nil, err
	}
	addrs := make([]schema.Address, len(o.requests))
	made := &launched{ids: make([]string, len(o.requests))}
	for i, r := range o.requests {
		addrs[i] = schema.LaunchedAddress(schema.KindJob, from.namespace, o.group.GetName(), r.GetName())
		made.ids[i] = planlaunch.LaunchID(doc.Lineage, addrs[i], o.requestID)
	}
	if before := doc.Jobs[addrs[0]]; before != nil && before.ID == made.ids[0] || doc.Past[made.ids[0]] != nil {
		made.existed = true // this very request
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
			doc = planlaunch.Terminated(doc, addr)
		}
		return doc, nil, nil
	}
	next, err := planlaunch.Launched(doc, o.launchings(from, specs), now)
	return next, made, err
}

// inherit finds what the order takes from its caller.
func (o *order) inherit(doc *state.Document) (*inherited, error) {
	asked, path := o.requests[0].GetNamespace(), o.paths[0]+".namespace"
	if o.group.GetNamespace() != "" {
		asked, path = o.group.GetNamespace(), "group.namespace"
	}
	namespace, err := jobs.Namespace(o.who, asked, path)
	if err != nil {
		return nil, err
	}
	for i, r := range o.requests {
		if _, err := jobs.Namespace(o.who, r.GetNamespace(), o.paths[i]+".namespace"); err != nil {
			return nil, err
		}
	}
	if namespace == "" {
		namespace = planlaunch.LaunchNamespace(o.requests[0].GetName())
		if o.group != nil {
			namespace = planlaunch.LaunchNamespace(o.group.GetName())
		}
	}
	from := &inherited{namespace: namespace}
	if o.who.Kind != caller.Job {
		return from, nil
	}
	from.parent = jobOf(doc, o.who.JobID)
	if err := stillRuns(from.parent, o.who); err != nil {
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
func (o *order) launchings(from *inherited, specs []*schema.Job) []planlaunch.Launching {
	launch := state.Launch{Request: o.requestID}
	if from.parent != nil {
		launch.Parent, launch.ParentAttempt = from.parent.ID, o.who.Attempt
	} else {
		launch.By = o.who.User
	}
	var all []planlaunch.Launching
	if o.group != nil {
		of := launch
		of.Name = o.group.GetName()
		all = append(all, planlaunch.Launching{Group: o.groupSpec(from.namespace), Launch: of})
	}
	for i, spec := range specs {
		of := launch
		of.Name, of.Detached = o.requests[i].GetName(), o.requests[i].GetDetached()
		all = append(all, planlaunch.Launching{Job: spec, Launch: of})
	}
	return all
}

func (o *order) groupSpec(namespace string) *schema.JobGroup {
	if o.group == nil {
		return nil
	}
	return &schema.JobGroup{
		Addr: schema.LaunchedAddress(schema.KindJobGroup, namespace, "", o.group.GetName()), Namespace: namespace,
		SameRegion: o.group.GetSameRegion(), SameZone: o.group.GetSameZone(),
	}
}

// jobOf finds a job that is not past by its id, nil if there is none.
func jobOf(doc *state.Document, id string) *state.Job {
	for _, j := range doc.Jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}
