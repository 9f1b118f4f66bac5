package cluster

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/admission"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/describe"
	"github.com/fray-ml/fray/controller/jobs"
	langrequest "github.com/fray-ml/fray/lang/request"
	planlaunch "github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// CreateReservation makes a pool from which the launched jobs of its namespace draw.
func (c *Server) CreateReservation(ctx context.Context, req *clusterapi.CreateReservationRequest) (*clusterapi.ReservationInfo, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	o := &admission.ReservationOrder{Caller: who, Config: req.GetConfig(), RequestID: req.GetRequestId()}
	if o.RequestID == "" {
		o.RequestID = rand.Text()
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var addr schema.Address
	err = c.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
		var err error
		doc, addr, err = o.Admit(doc, now)
		return doc, err
	})
	if err != nil {
		return nil, err
	}
	var seen *access.View
	err = access.Await(ctx, c.State, func(v *access.View) bool {
		seen = v
		return v.Doc.Resources[addr].Reservation != nil
	})
	if err != nil {
		return nil, err
	}
	return describe.Reservation(seen, addr), nil
}

// ReleaseReservation gives a launched reservation up. Doing so twice changes nothing.
func (c *Server) ReleaseReservation(ctx context.Context, req *clusterapi.ReleaseReservationRequest) (*clusterapi.ReleaseReservationResponse, error) {
	who, err := caller.Known(ctx)
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
		if who.Kind == caller.Job && launch.Parent != who.JobID {
			if err := jobs.NewTable(doc).MayEnd(who, &state.Job{ID: addr.String(), Launch: launch}); err != nil {
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
func (c *Server) GetReservation(ctx context.Context, req *clusterapi.GetReservationRequest) (*clusterapi.ReservationInfo, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	v, err := access.Present(ctx, c.State)
	if err != nil {
		return nil, err
	}
	addr, err := findReservation(v.Doc, who, req.GetReservationId())
	if err != nil {
		return nil, err
	}
	return describe.Reservation(v, addr), nil
}

// ListReservations lists those that the caller may know of, by address.
func (c *Server) ListReservations(ctx context.Context, req *clusterapi.ListReservationsRequest) (*clusterapi.ListReservationsResponse, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	namespace, err := jobs.Namespace(who, req.GetNamespace(), "namespace")
	if err != nil {
		return nil, err
	}
	v, err := access.Present(ctx, c.State)
	if err != nil {
		return nil, err
	}
	answer := &clusterapi.ListReservationsResponse{}
	for _, addr := range reservationsOf(v.Doc, who) {
		r := v.Doc.Resources[addr]
		released := r.Launch != nil && !r.Launch.ReleasedAt.IsZero()
		if !released && (namespace == "" || r.Reservation.Namespace == "" || r.Reservation.Namespace == namespace) {
			answer.Reservations = append(answer.Reservations, describe.Reservation(v, addr))
		}
	}
	return answer, nil
}

// reservationsOf are the reservations that a caller may know of.
func reservationsOf(doc *state.Document, who caller.Caller) []schema.Address {
	var found []schema.Address
	for addr, r := range doc.Resources {
		if r.Reservation != nil && admission.MayDraw(who, r.Reservation) {
			found = append(found, addr)
		}
	}
	slices.SortFunc(found, schema.Address.Compare)
	return found
}

func findReservation(doc *state.Document, who caller.Caller, asked string) (schema.Address, error) {
	if asked == "" {
		return schema.Address{}, badrequest.Of(langrequest.Mistake{Path: "reservation_id", Summary: "Missing attribute", Detail: "Give the id of a reservation, or its name."})
	}
	var known []string
	for _, addr := range reservationsOf(doc, who) {
		if admission.IsCalled(addr, asked, who.Namespace) {
			return addr, nil
		}
		known = append(known, addr.Scoped())
	}
	return schema.Address{}, badrequest.NotFound("reservation", asked, known)
}
