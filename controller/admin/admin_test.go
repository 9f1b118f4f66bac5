package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// plainState is state access to a document that only its changes change.
type plainState struct {
	doc *state.Document
	now time.Time
}

var _ access.State = (*plainState)(nil)

func newPlainState() *plainState {
	doc := &state.Document{FormatVersion: state.FormatVersion, Lineage: "abcdefghijklmnopqrstuvwxyz", Revision: 1}
	return &plainState{doc: change.Accepted(doc, accesstest.LocalStack()), now: time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)}
}

func (d *plainState) View() *access.View       { return &access.View{Doc: d.doc} }
func (d *plainState) Changed() <-chan struct{} { return nil }

func (d *plainState) Do(_ context.Context, change access.Change) error {
	next, err := change(d.doc, d.now)
	if err == nil {
		d.doc = next
	}
	return err
}

// asked is a request for a configuration, as an apply makes it of what it sees.
func asked(t *testing.T, m *plainState, desired schema.Desired) *clusterapi.ApplyRequest {
	t.Helper()
	doc := m.View().Doc
	next := apply.Accept(doc, apply.Request{Desired: desired})
	_, digest, err := reconcile.Proposed(&next.Desired, next, m.now)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(desired)
	if err != nil {
		t.Fatal(err)
	}
	return &clusterapi.ApplyRequest{Desired: encoded, PlanDigest: digest}
}

func desiring(names ...string) schema.Desired {
	desired := accesstest.LocalStack()
	for _, name := range names {
		desired.Jobs = append(desired.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: name}, Command: []schema.Text{schema.Plain("true")},
			Resources: schema.Resources{Provider: schema.ProviderLocal, Slices: 1, CPU: 1},
		})
	}
	return desired
}

func TestAdminAccepts(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	admin := &Server{State: m}
	request := asked(t, m, desiring("one"))
	before := m.View().Doc.Revision
	answer, err := admin.Apply(t.Context(), request)
	if err != nil || answer.GetRevision() != before+1 {
		t.Fatalf("revision %d, error %v; want %d", answer.GetRevision(), err, before+1)
	}
	if got := m.View().Doc.Desired.Jobs; len(got) != 1 || got[0].Addr.Name != "one" {
		t.Errorf("what is accepted has the jobs %v, want job.one", got)
	}

	// Once the job is there the same request is of a stack that is another one.
	m.doc = reconcile.Diff(&m.doc.Desired, m.doc, &plan.Observed{}, m.now).Next
	if _, err := admin.Apply(t.Context(), request); status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "changed while you were deciding") {
		t.Errorf("the second time: %v; want that the stack has changed", err)
	}
	if got := m.View().Doc.Revision; got != before+1 {
		t.Errorf("revision %d after a rejection, want %d", got, before+1)
	}
}

func TestAdminOutputs(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	admin := &Server{State: m}
	for _, test := range []struct {
		name     string
		revision uint64
		outputs  string
		want     bool
		code     codes.Code
	}{
		{"of another revision", m.View().Doc.Revision + 1, `{"x":{"value":1}}`, false, codes.OK},
		{"garbage", m.View().Doc.Revision, `[`, false, codes.InvalidArgument},
		{"of this revision", m.View().Doc.Revision, `{"x":{"value":1}}`, true, codes.OK},
	} {
		_, err := admin.Apply(t.Context(), &clusterapi.ApplyRequest{Outputs: []byte(test.outputs), Revision: test.revision})
		if status.Code(err) != test.code {
			t.Errorf("%s: %v, want code %s", test.name, err, test.code)
		}
		if _, got := m.View().Doc.Outputs["x"]; got != test.want {
			t.Errorf("%s: recorded %v, want %v", test.name, got, test.want)
		}
	}
}

func TestAdminRefusesWhilePaused(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	admin := &Server{State: m}
	if err := m.Do(t.Context(), func(doc *state.Document, now time.Time) (*state.Document, error) {
		return pause.Set(doc, state.Pause{At: now, By: "ada", Reason: "the network"}), nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err := admin.Apply(t.Context(), asked(t, m, desiring("one")))
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "ada paused the stack at") || !strings.Contains(err.Error(), "(the network); fray resume") {
		t.Errorf("got %v, want that ada paused it, why, and what to do", err)
	}
	if _, err := admin.Resume(t.Context(), &clusterapi.ResumeRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Apply(t.Context(), asked(t, m, desiring("one"))); err != nil {
		t.Errorf("after resuming: %v", err)
	}
}

func TestAdminRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	admin := &Server{State: m}
	for _, test := range []struct {
		name string
		req  *clusterapi.ApplyRequest
		want string
	}{
		{"no configuration", &clusterapi.ApplyRequest{}, "desired: "},
		{"an address", &clusterapi.ApplyRequest{Desired: []byte("{}"), Stop: []string{"job.a", "job["}}, "stop[1]: "},
	} {
		_, err := admin.Apply(t.Context(), test.req)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an invalid argument that says %q", test.name, err, test.want)
		}
	}
}

func TestPauseIsOne(t *testing.T) {
	t.Parallel()
	doc := &state.Document{}
	first := pause.Set(doc, state.Pause{By: "ada"})
	if doc.Paused != nil || first.Paused == nil || first.Paused.By != "ada" {
		t.Errorf("paused %v of a document that is paused %v", first.Paused, doc.Paused)
	}
	if again := pause.Set(first, state.Pause{By: "bob"}); again != first {
		t.Errorf("a second pause made another document: %v", again.Paused)
	}
	if pause.Clear(doc) != doc || pause.Clear(first).Paused != nil || first.Paused == nil {
		t.Error("resuming changed what was not paused, or the document itself")
	}
}

// A plan that was made before the stack got a new key is not carried out: its jobs
// would restart with what their hosts cannot open.
func TestAdminRefusesWhatAFormerKeySealed(t *testing.T) {
	t.Parallel()
	m := newPlainState()
	sealer := func(fill byte) *state.Key {
		key, err := state.NewKey(bytes.Repeat([]byte{fill}, state.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	present, former := sealer(2), sealer(1)
	admin := &Server{State: m, Log: slog.New(slog.DiscardHandler), Store: storetest.NewMemory(), Sealer: present}
	for _, test := range []struct {
		name string
		key  *state.Key
		want codes.Code
	}{{"former", former, codes.Aborted}, {"present", present, codes.OK}} {
		desired := desiring("one")
		desired.Jobs[0].Environment.Env = map[string]schema.Text{"WORD": schema.Secret("word")}
		sealed, err := desired.Seal(test.key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Apply(t.Context(), asked(t, m, sealed)); status.Code(err) != test.want {
			t.Errorf("sealed by the %s key: got %v, want code %s", test.name, err, test.want)
		}
	}
}
