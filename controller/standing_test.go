package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// shelf opens recorded configurations, which say what is desired.
type shelf struct {
	opened []string
	says   map[string]schema.Desired
	broken error
}

func (s *shelf) open(_ context.Context, name string) (func(*state.Document) (*schema.Desired, error), error) {
	s.opened = append(s.opened, name)
	if s.broken != nil {
		return nil, s.broken
	}
	desired, ok := s.says[name]
	if !ok {
		return nil, errors.New("there is no " + name)
	}
	return func(*state.Document) (*schema.Desired, error) { return &desired, nil }, nil
}

func wantingSpace(name string) schema.Desired {
	return schema.Desired{Namespaces: []schema.Namespace{{Addr: schema.Address{Kind: schema.KindNamespace, Name: name}}}}
}

// TestValuesOfWhatStandsAreFollowed: those of the configuration that was accepted
// last, opened anew with each, and of none once none is named.
func TestValuesOfWhatStandsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		s := &shelf{says: map[string]schema.Desired{"one": wantingSpace("one"), "two": wantingSpace("two")}}
		l.cfg.Recorded = s.open
		for _, test := range []struct{ name, want string }{{"one", "one"}, {"two", "two"}, {"two", "two"}, {"", "zero"}} {
			next := apply.Accept(l.stepper.Document(), apply.Request{Desired: wantingSpace("zero"), Recorded: test.name})
			if err := l.stepper.Accept(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				l.stand(t.Context())
				if _, err := l.stepper.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := l.stepper.Document().Desired.Namespaces[0].Addr.Name; got != test.want {
				t.Errorf("recorded as %q: namespace %s is desired, want %s", test.name, got, test.want)
			}
		}
		if got := strings.Join(s.opened, " "); got != "one two two" {
			t.Errorf("opened %q, want each once when it was accepted", got)
		}
	})
}

// TestValuesStandWhileTheyCannotBeFollowed: it holds nothing up, is told once, and
// is tried again, more and more seldom.
func TestValuesStandWhileTheyCannotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &shelf{says: map[string]schema.Desired{"one": wantingSpace("one")}, broken: errors.New("the store is away")}
		cfg := &Config{Recorded: s.open, Log: slog.New(slog.NewTextHandler(&log, nil))}
		follows := &standing{ctx: t.Context(), cfg: cfg, name: "one"}
		try := func() *schema.Desired {
			t.Helper()
			desired, err := follows.Refine(&state.Document{})
			if err != nil {
				t.Fatalf("the loop was held up: %v", err)
			}
			return desired
		}
		for range 1000 {
			if try() != nil {
				t.Fatal("something is desired by what cannot be opened")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(s.opened); n < 2 || n > 20 {
			t.Errorf("tried %d times in 100 s, want some, not one in each step", n)
		}
		if n := strings.Count(log.String(), "the store is away"); n != 1 {
			t.Errorf("told %d times, want once:\n%s", n, log.String())
		}
		s.broken = nil
		time.Sleep(time.Hour)
		if got := try(); got == nil || got.Namespaces[0].Addr.Name != "one" {
			t.Errorf("with the store back: %v, want what is recorded", got)
		}
	})
}

// TestFilesThatAreFollowedSeeToTheirs: no recording takes the place of files.
func TestFilesThatAreFollowedSeeToTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.cfg.Recorded = (&shelf{}).open
		refined := 0
		p := &Proposal{Name: "files", Refine: func(*state.Document) (*schema.Desired, error) {
			refined++
			return nil, nil
		}, Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
			return apply.Accept(doc, apply.Request{Desired: wantingSpace("files")}), nil
		}}
		l.cfg.Proposal = func() *Proposal { return p }
		for range 2 {
			if err := l.follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.stand(t.Context())
			if _, err := l.stepper.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if refined != 2 {
			t.Errorf("the files' values were looked at %d times in 2 steps", refined)
		}
	})
}

func TestAdminRecorded(t *testing.T) {
	t.Parallel()
	m := newPlainDesk()
	cfg := &Config{Recorded: (&shelf{says: map[string]schema.Desired{"one": {}}}).open, Store: storetest.NewMemory(), Log: slog.New(slog.DiscardHandler)}
	admin := &adminServer{desk: m, cfg: cfg}
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
	if _, err := (&adminServer{desk: m}).Apply(t.Context(), &clusterapi.ApplyRequest{Desired: []byte("{}"), Recorded: "one"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a controller that opens none: %v, want unimplemented", err)
	}
}

// TestAdminSweeps: whoever accepts removes what is old and nothing names.
func TestAdminSweeps(t *testing.T) {
	t.Parallel()
	m := newPlainDesk()
	s := storetest.NewMemory()
	admin := &adminServer{desk: m, cfg: &Config{Store: s, Log: slog.New(slog.DiscardHandler)}}
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
	m := newPlainDesk()
	admin := &adminServer{desk: m}
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

// changed has a leader make a change.
func changed(t *testing.T, l *leader, change func(doc *state.Document) *state.Document) {
	t.Helper()
	r := &request{done: make(chan error, 1), change: func(doc *state.Document, _ time.Time) (*state.Document, error) {
		return change(doc), nil
	}}
	l.queue = append(l.queue, r)
	if err := errors.Join(l.change(t.Context()), <-r.done); err != nil {
		t.Fatal(err)
	}
}

// TestAStopKeepsFollowing: a change that leaves the configuration as it was ends no
// following, that of files neither; one that does not, ends it.
func TestAStopKeepsFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		refined := 0
		p := &Proposal{Name: "files", Refine: func(*state.Document) (*schema.Desired, error) {
			refined++
			return nil, nil
		}, Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
			return apply.Accept(doc, apply.Request{Desired: wantingSpace("files")}), nil
		}}
		l.cfg.Proposal = func() *Proposal { return p }
		step := func() {
			t.Helper()
			if err := l.follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.stand(t.Context())
			if _, err := l.stepper.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		step()
		for _, test := range []struct {
			name    string
			desired schema.Desired
			want    int
		}{{"a stop", wantingSpace("files"), 2}, {"another configuration", wantingSpace("other"), 2}} {
			changed(t, l, func(doc *state.Document) *state.Document {
				return apply.Accept(doc, apply.Request{Desired: test.desired, KeepRecorded: true})
			})
			if step(); refined != test.want {
				t.Errorf("after %s the files' values were looked at %d times, want %d", test.name, refined, test.want)
			}
		}
	})
}
