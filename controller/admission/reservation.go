package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/jobs"
	langrequest "github.com/fray-ml/fray/lang/request"
	planlaunch "github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ReservationOrder is what one call asks to reserve.
type ReservationOrder struct {
	Caller    caller.Caller
	Config    *clusterapi.ReservationConfig
	RequestID string
}

// Validate rejects mistakes that the request shows by itself.
func (o *ReservationOrder) Validate() error {
	var wrong []langrequest.Mistake
	if len(o.RequestID) > MaxRequestID {
		wrong = append(wrong, langrequest.Mistake{Path: "request_id", Summary: "Invalid value for request_id", Detail: fmt.Sprintf("It has %d bytes, and may have %d.", len(o.RequestID), MaxRequestID)})
	}
	if name := o.Config.GetName(); name != "" && !schema.ValidLaunchName(name) {
		wrong = append(wrong, langrequest.Mistake{Path: "config.name", Summary: "Invalid name", Detail: fmt.Sprintf(
			"%q cannot name a reservation: a name is letters, digits and . _ - /, beginning and ending with a letter, a digit or an underscore, at most 200 in all.", name)})
	}
	if ttl := o.Config.GetTtl(); ttl != nil && ttl.CheckValid() != nil {
		wrong = append(wrong, langrequest.Mistake{Path: "config.ttl", Summary: "Invalid value for duration", Detail: "It is out of range, or its seconds and nanoseconds have different signs."})
	}
	if len(wrong) > 0 {
		return badrequest.Of(wrong...)
	}
	return nil
}

// name is what was asked for, or one that the same request gets again.
func (o *ReservationOrder) name() string {
	if o.Config.GetName() != "" {
		return o.Config.GetName()
	}
	sum := sha256.Sum256([]byte(o.RequestID))
	return "reservation-" + hex.EncodeToString(sum[:5])
}

// Admit is the change that reserves. It is pure.
func (o *ReservationOrder) Admit(doc *state.Document, now time.Time) (*state.Document, schema.Address, error) {
	none := schema.Address{}
	namespace, err := jobs.Namespace(o.Caller, o.Config.GetNamespace(), "config.namespace")
	if err != nil {
		return nil, none, err
	}
	if namespace == "" {
		namespace = planlaunch.LaunchNamespace(o.name())
	}
	launch := state.Launch{Name: o.name(), Request: o.RequestID, Detached: o.Config.GetDetached(), By: o.Caller.User}
	check := &langrequest.Context{Stack: stackOf(doc, now)}
	if o.Caller.Kind == caller.Job {
		parent := JobOf(doc, o.Caller.JobID)
		if err := stillRuns(parent, o.Caller); err != nil {
			return nil, none, err
		}
		launch.By, launch.Parent, launch.ParentAttempt = "", parent.ID, o.Caller.Attempt
		check.Provider, check.Region = parent.Spec.Resources.Provider, runsIn(doc, parent)
	}
	addr := schema.LaunchedAddress(schema.KindReservation, namespace, "", o.name())
	if before := doc.Resources[addr]; before.Launch != nil && before.Launch.Request == o.RequestID {
		return doc, addr, nil // this very request
	}
	spec, wrong := check.Reservation(&langrequest.Reservation{Path: "config", Addr: addr, Namespace: namespace, Fields: reservationFields(o.Config)})
	if len(wrong) > 0 {
		return nil, none, badrequest.Of(wrong...)
	}
	if why := check.NeverFits([]*schema.Job{leastHeld(spec)}, nil); why != "" {
		return nil, none, status.Errorf(codes.FailedPrecondition, "it can never be held: %s", why)
	}
	next, err := planlaunch.Launched(doc, []planlaunch.Launching{{Reservation: spec, Launch: launch}}, now)
	if err != nil {
		return nil, none, status.Errorf(codes.AlreadyExists, "%v: choose another name, or release that one first", err)
	}
	return next, addr, nil
}

// leastHeld is what a reservation takes at least, as a job would.
func leastHeld(r *schema.Reservation) *schema.Job {
	return &schema.Job{Namespace: r.Namespace, Resources: schema.Resources{
		Provider: r.Provider, TPU: r.Min.TPU, GPU: r.Min.GPU, CPU: r.Min.CPU, Memory: r.Min.Memory, Slices: r.Min.Slices,
	}}
}
