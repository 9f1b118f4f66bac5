package controller

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	planlaunch "github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// CreateReservation makes a pool from which the launched jobs of its namespace draw.
func (c *clusterServer) CreateReservation(ctx context.Context, req *clusterapi.CreateReservationRequest) (*clusterapi.ReservationInfo, error) {
	who, err := known(ctx)
	if err != nil {
		return nil, err
	}
	o := &poolOrder{who: who, config: req.GetConfig(), requestID: req.GetRequestId()}
	if o.requestID == "" {
		o.requestID = rand.Text()
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	var addr schema.Address
	err = c.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
		var err error
		doc, addr, err = o.carryOut(doc, now)
		return doc, err
	})
	if err != nil {
		return nil, err
	}
	var seen *View
	err = c.await(ctx, func(v *View) bool {
		seen = v
		return v.Doc.Resources[addr].Reservation != nil
	})
	if err != nil {
		return nil, err
	}
	return reservationInfo(seen, addr), nil
}

// poolOrder is what one call asks to reserve.
type poolOrder struct {
	who       caller
	config    *clusterapi.ReservationConfig
	requestID string
}

// validate refuses what needs no state to be seen wrong, and settles the name.
func (o *poolOrder) validate() error {
	var wrong []langrequest.Mistake
	if len(o.requestID) > maxLaunchRequestID {
		wrong = append(wrong, langrequest.Mistake{Path: "request_id", Summary: "Invalid value for request_id", Detail: fmt.Sprintf("It has %d bytes, and may have %d.", len(o.requestID), maxLaunchRequestID)})
	}
	if name := o.config.GetName(); name != "" && !schema.ValidLaunchName(name) {
		wrong = append(wrong, langrequest.Mistake{Path: "config.name", Summary: "Invalid name", Detail: fmt.Sprintf(
			"%q cannot name a reservation: a name is letters, digits and . _ - /, beginning and ending with a letter, a digit or an underscore, at most 200 in all.", name)})
	}
	if ttl := o.config.GetTtl(); ttl != nil && ttl.CheckValid() != nil {
		wrong = append(wrong, langrequest.Mistake{Path: "config.ttl", Summary: "Invalid value for duration", Detail: "It is out of range, or its seconds and nanoseconds have different signs."})
	}
	if len(wrong) > 0 {
		return refused(wrong)
	}
	return nil
}

// name is what was asked for, or one that the same request gets again.
func (o *poolOrder) name() string {
	if o.config.GetName() != "" {
		return o.config.GetName()
	}
	sum := sha256.Sum256([]byte(o.requestID))
	return "reservation-" + hex.EncodeToString(sum[:5])
}

// carryOut is the change that reserves. It is pure.
func (o *poolOrder) carryOut(doc *state.Document, now time.Time) (*state.Document, schema.Address, error) {
	none := schema.Address{}
	namespace, err := namespaceFor(o.who, o.config.GetNamespace(), "config.namespace")
	if err != nil {
		return nil, none, err
	}
	if namespace == "" {
		namespace = planlaunch.LaunchNamespace(o.name())
	}
	launch := state.Launch{Name: o.name(), Request: o.requestID, Detached: o.config.GetDetached(), By: o.who.User}
	check := &langrequest.Context{Stack: stackOf(doc, now)}
	if o.who.Kind == callerJob {
		parent := jobOf(doc, o.who.JobID)
		if err := stillRuns(parent, o.who); err != nil {
			return nil, none, err
		}
		launch.By, launch.Parent, launch.ParentAttempt = "", parent.ID, o.who.Attempt
		check.Provider, check.Region = parent.Spec.Resources.Provider, runsIn(doc, parent)
	}
	addr := schema.LaunchedAddress(schema.KindReservation, namespace, "", o.name())
	if before := doc.Resources[addr]; before.Launch != nil && before.Launch.Request == o.requestID {
		return doc, addr, nil // this very request
	}
	spec, wrong := check.Reservation(&langrequest.Reservation{Path: "config", Addr: addr, Namespace: namespace, Fields: reservationFields(o.config)})
	if len(wrong) > 0 {
		return nil, none, refused(wrong)
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
		Provider: r.Provider, TPU: r.Min.TPU, CPU: r.Min.CPU, Memory: r.Min.Memory, Slices: r.Min.Slices,
	}}
}

// ReleaseReservation gives a launched reservation up. Doing so twice changes nothing.
func (c *clusterServer) ReleaseReservation(ctx context.Context, req *clusterapi.ReleaseReservationRequest) (*clusterapi.ReleaseReservationResponse, error) {
	who, err := known(ctx)
	if err != nil {
		return nil, err
	}
	err = c.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
		addr, err := findReservation(doc, who, req.GetReservationId())
		if err != nil {
			return nil, err
		}
		launch := doc.Resources[addr].Launch
		if launch == nil {
			return nil, status.Errorf(codes.FailedPrecondition, "%s is declared in the stack's files: remove it there and apply", addr)
		}
		if who.Kind == callerJob && launch.Parent != who.JobID {
			if err := mayEnd(newJobTable(doc), who, &state.Job{ID: addr.String(), Launch: launch}); err != nil {
				return nil, err
			}
		}
		return planlaunch.Released(doc, addr, now), nil
	})
	if err != nil {
		return nil, err
	}
	return &clusterapi.ReleaseReservationResponse{}, nil
}

// GetReservation tells how a reservation stands.
func (c *clusterServer) GetReservation(ctx context.Context, req *clusterapi.GetReservationRequest) (*clusterapi.ReservationInfo, error) {
	who, err := known(ctx)
	if err != nil {
		return nil, err
	}
	v, err := c.present(ctx)
	if err != nil {
		return nil, err
	}
	addr, err := findReservation(v.Doc, who, req.GetReservationId())
	if err != nil {
		return nil, err
	}
	return reservationInfo(v, addr), nil
}

// ListReservations lists those that the caller may know of, by address.
func (c *clusterServer) ListReservations(ctx context.Context, req *clusterapi.ListReservationsRequest) (*clusterapi.ListReservationsResponse, error) {
	who, err := known(ctx)
	if err != nil {
		return nil, err
	}
	namespace, err := namespaceFor(who, req.GetNamespace(), "namespace")
	if err != nil {
		return nil, err
	}
	v, err := c.present(ctx)
	if err != nil {
		return nil, err
	}
	answer := &clusterapi.ListReservationsResponse{}
	for _, addr := range reservationsOf(v.Doc, who) {
		r := v.Doc.Resources[addr]
		released := r.Launch != nil && !r.Launch.ReleasedAt.IsZero()
		if !released && (namespace == "" || r.Reservation.Namespace == "" || r.Reservation.Namespace == namespace) {
			answer.Reservations = append(answer.Reservations, reservationInfo(v, addr))
		}
	}
	return answer, nil
}

// reservationsOf are the reservations that a caller may know of.
func reservationsOf(doc *state.Document, who caller) []schema.Address {
	var found []schema.Address
	for addr, r := range doc.Resources {
		if r.Reservation != nil && mayDraw(who, r.Reservation) {
			found = append(found, addr)
		}
	}
	slices.SortFunc(found, schema.Address.Compare)
	return found
}

func findReservation(doc *state.Document, who caller, asked string) (schema.Address, error) {
	if asked == "" {
		return schema.Address{}, refused([]langrequest.Mistake{{Path: "reservation_id", Summary: "Missing attribute", Detail: "Give the id of a reservation, or its name."}})
	}
	var known []string
	for _, addr := range reservationsOf(doc, who) {
		if isCalled(addr, asked, who.Namespace) {
			return addr, nil
		}
		known = append(known, addr.Scoped())
	}
	return schema.Address{}, notFound("reservation", asked, known)
}

// reservationInfo is a reservation on record as the API tells of it.
func reservationInfo(v *View, addr schema.Address) *clusterapi.ReservationInfo {
	r := v.Doc.Resources[addr]
	spec := r.Reservation
	info := &clusterapi.ReservationInfo{ReservationId: addr.Scoped(), Config: reservationConfig(addr, r)}
	info.Released = r.Launch != nil && !r.Launch.ReleasedAt.IsZero()
	stand := capacity.ReservationStatus(&schema.Desired{Reservations: []schema.Reservation{*spec}}, &plan.Plan{Next: v.Doc, Pending: v.Plan.Pending}, v.At)[0]
	info.Allocated, info.Pending = amountOf(spec, spec.Max, stand.Allocated), amountOf(spec, spec.Max, stand.Pending)
	info.Free, info.PendingReasons, info.ExpiresAt = int32(stand.Free), stand.Reasons, stamp(stand.ExpiresAt)
	for _, holder := range stand.Jobs {
		if j := v.Doc.Jobs[holder]; j != nil {
			info.JobIds = append(info.JobIds, j.ID)
		}
	}
	return info
}

// amountOf is a number of slices of a shape of a reservation, which may be none.
func amountOf(of *schema.Reservation, shape schema.Capacity, n int) *clusterapi.Resources {
	return &clusterapi.Resources{
		Tpu: shape.TPU, Cpu: shape.CPU, Memory: int64(shape.Memory), Disk: int64(shape.Disk), Slices: int32(n), Preemptible: new(of.Preemptible),
	}
}

func reservationConfig(addr schema.Address, r state.Resource) *clusterapi.ReservationConfig {
	spec := r.Reservation
	config := &clusterapi.ReservationConfig{
		Name: addr.Name, Min: amountOf(spec, spec.Min, spec.Min.Slices), Max: amountOf(spec, spec.Max, spec.Max.Slices),
		Priority: int32(spec.Priority), Ttl: durationpb.New(time.Duration(spec.TTL)), Preemptible: spec.Preemptible, Namespace: spec.Namespace,
	}
	config.Max.Provider, config.Max.Zones, config.Max.Regions = string(spec.Provider), spec.Zones, spec.Regions
	if r.Launch != nil {
		config.Name, config.Detached = r.Launch.Name, r.Launch.Detached
	}
	return config
}
