package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func recorded(name string) func(context.Context, string) (func(*state.Document) (*schema.Desired, error), error) {
	return func(_ context.Context, asked string) (func(*state.Document) (*schema.Desired, error), error) {
		if asked != name {
			return nil, errors.New("there is no " + asked)
		}
		return func(*state.Document) (*schema.Desired, error) { return &schema.Desired{}, nil }, nil
	}
}

func TestAdminRecorded(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	admin := &Server{State: m, Recorded: recorded("one"), Store: storetest.NewMemory(), Log: slog.New(slog.DiscardHandler)}
	before := m.View().Doc.Revision
	for _, test := range []struct {
		name, recorded, want string
		keep                 bool
		code                 codes.Code
	}{
		{name: "it cannot be opened", recorded: "other", code: codes.Unimplemented},
		{name: "it is opened", recorded: "one", want: "one"},
		{name: "it is kept", keep: true, want: "one"},
		{name: "there is none", want: ""},
	} {
		req := asked(t, m, desiring("a"))
		req.Recorded, req.KeepRecorded = test.recorded, test.keep
		_, err := admin.Apply(t.Context(), req)
		if status.Code(err) != test.code {
			t.Errorf("%s: %v, want code %s", test.name, err, test.code)
		}
		if doc := m.View().Doc; doc.Recorded != test.want || test.code != codes.OK && doc.Revision != before {
			t.Errorf("%s: %q is recorded in revision %d, want %q", test.name, doc.Recorded, doc.Revision, test.want)
		}
	}
	if _, err := (&Server{State: m}).Apply(t.Context(), &clusterapi.ApplyRequest{Desired: []byte("{}"), Recorded: "one"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a controller that opens none: %v, want unimplemented", err)
	}
}

// TestAdminSweeps: accepting removes old recordings that the state does not name.
func TestAdminSweeps(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	s := storetest.NewMemory()
	admin := &Server{State: m, Store: s, Log: slog.New(slog.DiscardHandler)}
	for _, key := range []string{store.ConfigurationKey("young"), store.StateKey} {
		if _, err := s.Put(t.Context(), key, []byte("x"), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.Apply(t.Context(), asked(t, m, desiring("a"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), store.ConfigurationKey("young")); err != nil {
		t.Errorf("what was just written is gone: %v", err)
	}
}

// TestAdminAmends: what moves goes along in the same change, if it is what was
// approved.
func TestAdminAmends(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	admin := &Server{State: m}
	if _, err := admin.Apply(t.Context(), asked(t, m, desiring("old"))); err != nil {
		t.Fatal(err)
	}
	m.doc = reconcile.Diff(&m.doc.Desired, m.doc, &plan.Observed{}, m.now).Next
	was := schema.Address{Kind: schema.KindJob, Name: "old"}
	now := schema.Address{Kind: schema.KindJob, Name: "new"}
	id := m.doc.Jobs[was].ID
	moved := Amendments{
		Moves:    []schema.Move{{From: was, To: now}},
		Approved: []plan.Amendment{{Verb: plan.AmendMove, Addr: now, From: was}},
	}
	for _, test := range []struct {
		name  string
		sent  Amendments
		code  codes.Code
		where schema.Address
	}{
		{"something else was approved", Amendments{Moves: moved.Moves, Approved: []plan.Amendment{{Verb: plan.AmendMove, Addr: was, From: now}}}, codes.Aborted, was},
		{"what was approved", moved, codes.OK, now},
	} {
		req := asked(t, m, desiring("new"))
		next, err := (&accepted{Request: apply.Request{Desired: desiring("new")}, amendments: &moved}).amend(m.doc, "", m.now)
		if err != nil {
			t.Fatal(err)
		}
		next = apply.Accept(next, apply.Request{Desired: desiring("new")})
		if _, req.PlanDigest, err = reconcile.Proposed(&next.Desired, next, m.now); err != nil {
			t.Fatal(err)
		}
		if req.Amendments, err = test.sent.Encode(); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Apply(t.Context(), req); status.Code(err) != test.code {
			t.Errorf("%s: %v, want code %s", test.name, err, test.code)
		}
		if j := m.doc.Jobs[test.where]; j == nil || j.ID != id {
			t.Errorf("%s: %s is %v, want the job %s", test.name, test.where, j, id)
		}
	}
}

func TestAmendmentsTravel(t *testing.T) {
	t.Parallel()
	if data, err := (Amendments{Moves: []schema.Move{{}}}).Encode(); data != nil || err != nil {
		t.Errorf("nothing to do is sent as %q, %v", data, err)
	}
	whole := schema.Address{Module: "module.a"}
	sent := Amendments{
		Moves: []schema.Move{{From: whole, To: schema.Address{Module: "module.b"}}}, Removals: []schema.Removal{{From: whole, Destroy: true}},
		Approved: []plan.Amendment{{Verb: plan.AmendForget, Addr: schema.Address{Kind: schema.KindJob, Name: "x"}, Slices: []string{"x-0"}}},
	}
	data, err := sent.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var got Amendments
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Moves[0] != sent.Moves[0] || got.Removals[0] != sent.Removals[0] || !got.Same(sent.Approved) {
		t.Errorf("got %+v, want %+v", got, sent)
	}
}
