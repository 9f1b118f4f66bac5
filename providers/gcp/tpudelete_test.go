package gcp

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

func stackB(spec *schema.SliceSpec) { spec.Stack = "stack-b" }

// What is deleted, by what was there.
func TestDelete(t *testing.T) {
	for name, test := range deleteCases(t) {
		t.Run(name, test.run)
	}
}

// deleteCase is what is there when a slice is deleted, and what that comes to.
type deleteCase struct {
	there    func(*tpuService)
	rejected bool
	want     string // the one call that changes something; "": there is none
}

func (test deleteCase) run(t *testing.T) {
	s := newTPUService(t)
	test.there(s)
	p := s.provider(t)
	for range 2 { // it is the same to do it again
		err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"})
		if test.rejected {
			wantKind(t, err, schema.ErrorPermission, "left alone")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	nodes, queued := s.count("DeleteNode"), s.count("DeleteQueuedResource")
	wantNodes, wantQueued := 0, 0
	switch test.want {
	case "DeleteNode":
		wantNodes = 1
	case "DeleteQueuedResource":
		wantQueued = 1
	}
	if nodes != wantNodes || queued != wantQueued {
		t.Errorf("DeleteNode was called %d times, DeleteQueuedResource %d times, want %d and %d", nodes, queued, wantNodes, wantQueued)
	}
}

func deleteCases(t *testing.T) map[string]deleteCase {
	return map[string]deleteCase{
		"a node":            {there: func(s *tpuService) { s.setNode("one", nodeOf(t, tpuSpec("one"))) }, want: "DeleteNode"},
		"a queued resource": {there: func(s *tpuService) { s.setQueued("one", queuedOf(t, tpuSpec("one"))) }, want: "DeleteQueuedResource"},
		"both, by force": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.setQueued("one", queuedOf(t, tpuSpec("one")))
		}, want: "DeleteQueuedResource"},
		"a dead node": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.node("one").State = tpuapi.Node_TERMINATED
		}, want: "DeleteNode"},
		"a suspended queued resource": {there: func(s *tpuService) {
			s.setQueued("one", queuedOf(t, tpuSpec("one")))
			s.queue("one").State.State = tpuapi.QueuedResourceState_SUSPENDED
		}, want: "DeleteQueuedResource"},
		"one that cannot be read": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.node("one").Metadata = nil
			s.node("one").State = tpuapi.Node_TERMINATED
		}, want: "DeleteNode"},
		"a node that is going": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.node("one").State = tpuapi.Node_DELETING
		}},
		"a queued resource that is going": {there: func(s *tpuService) {
			s.setQueued("one", queuedOf(t, tpuSpec("one")))
			s.queue("one").State.State = tpuapi.QueuedResourceState_DELETING
		}},
		"a queued resource that is going with its node": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.node("one").State = tpuapi.Node_DELETING
			s.setQueued("one", queuedOf(t, tpuSpec("one")))
			s.queue("one").State.State = tpuapi.QueuedResourceState_DELETING
		}},
		"a queued resource that waits for its node to go": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.setQueued("one", queuedOf(t, tpuSpec("one")))
			s.queue("one").State.State = tpuapi.QueuedResourceState_DELETING
		}, want: "DeleteQueuedResource"},
		"nothing":              {there: func(*tpuService) {}},
		"another stack's node": {there: func(s *tpuService) { s.setNode("one", nodeOf(t, tpuSpec("one", stackB))) }, rejected: true},
		"another stack's queued resource": {there: func(s *tpuService) {
			s.setQueued("one", queuedOf(t, tpuSpec("one", stackB)))
		}, rejected: true},
		"an unlabelled node":            {there: func(s *tpuService) { s.setNode("one", &tpuapi.Node{State: tpuapi.Node_READY}) }, rejected: true},
		"an unlabelled queued resource": {there: func(s *tpuService) { s.setQueued("one", &tpuapi.QueuedResource{}) }, rejected: true},
		"a node whose queued resource is another stack's": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.setQueued("one", queuedOf(t, tpuSpec("one", stackB)))
		}, rejected: true},
		"a queued resource whose node is unlabelled": {there: func(s *tpuService) {
			s.setNode("one", &tpuapi.Node{State: tpuapi.Node_READY})
			s.setQueued("one", queuedOf(t, tpuSpec("one")))
		}, rejected: true},
		"a node that shares its name with a queued resource of others": {there: func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			q := queuedOf(t, tpuSpec("one"))
			q.GetTpu().GetNodeSpec()[0].NodeId = "two"
			s.setQueued("one", q)
		}, want: "DeleteNode"},
		"a queued resource of several nodes": {there: func(s *tpuService) {
			q := queuedOf(t, tpuSpec("one"))
			q.GetTpu().NodeSpec = append(q.GetTpu().GetNodeSpec(), q.GetTpu().GetNodeSpec()[0])
			s.setQueued("one", q)
		}, rejected: true},
	}
}

// What an inventory knew is no reason to delete what is there now.
func TestDeleteByStaleKnowledge(t *testing.T) {
	s := newTPUService(t)
	s.setNode("one", nodeOf(t, tpuSpec("one")))
	p := s.provider(t)
	if _, err := p.Inventory(t.Context(), "stack-a"); err != nil {
		t.Fatal(err)
	}
	s.do(func() { s.setNode("one", nodeOf(t, tpuSpec("one", stackB))) })
	wantKind(t, p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}), schema.ErrorPermission)
	if s.node("one").GetState() != tpuapi.Node_READY {
		t.Error("another stack's node is being deleted")
	}
}

// A slice is deleted where its spec states that it is, whatever lists show: a list that
// is empty and wrong must not pass for a deletion.
func TestDeleteBelievesNoList(t *testing.T) {
	s := newTPUService(t)
	for _, spec := range []schema.SliceSpec{tpuSpec("one"), tpuSpec("two")} {
		p := s.provider(t)
		if _, err := p.Inventory(t.Context(), "stack-a"); err != nil { // which shows none of it
			t.Fatal(err)
		}
		s.do(func() { s.setNode(spec.Name, nodeOf(t, spec)) })
		before := s.count("ListNodes")
		if err := p.Delete(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if state := s.node(spec.Name).GetState(); state != tpuapi.Node_DELETING {
			t.Errorf("the node %s is %s", spec.Name, state)
		}
		if got := s.count("ListNodes"); got != before {
			t.Errorf("nodes were listed %d times for it", got-before)
		}
	}
}

// A deletion after an inventory lists nothing again.
func TestDeleteAsksForOneSliceOnly(t *testing.T) {
	s := newTPUService(t)
	s.setNode("one", nodeOf(t, tpuSpec("one")))
	p := s.provider(t)
	if _, err := p.Inventory(t.Context(), "stack-a"); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	if got := s.count("ListNodes"); got != 1 {
		t.Errorf("the nodes were listed %d times", got)
	}
}

func TestDeleteThatCannotRead(t *testing.T) {
	for _, method := range []string{"GetNode", "GetQueuedResource", "ListNodes", "DeleteNode"} {
		t.Run(method, func(t *testing.T) {
			s := newTPUService(t)
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.reject = func(called string) error {
				if called == method {
					return status.Error(codes.Unavailable, "down")
				}
				return nil
			}
			wantKind(t, s.provider(t).Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}), schema.ErrorUnavailable, "down")
			if s.node("one").GetState() != tpuapi.Node_READY {
				t.Error("it is being deleted")
			}
		})
	}
}

// What goes while it is being deleted is gone.
func TestDeleteOfWhatGoes(t *testing.T) {
	for method, there := range map[string]func(*tpuService){
		"DeleteNode":           func(s *tpuService) { s.setNode("one", nodeOf(t, tpuSpec("one"))) },
		"DeleteQueuedResource": func(s *tpuService) { s.setQueued("one", queuedOf(t, tpuSpec("one"))) },
	} {
		s := newTPUService(t)
		there(s)
		s.reject = func(called string) error {
			if called == method {
				return status.Error(codes.NotFound, "was not found")
			}
			return nil
		}
		if err := s.provider(t).Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestDeleteNeedsAStack(t *testing.T) {
	s := newTPUService(t)
	s.setNode("one", &tpuapi.Node{})
	wantKind(t, s.provider(t).Delete(t.Context(), schema.SliceSpec{Stack: "", Name: "one"}), schema.ErrorInvalid)
	wantKind(t, s.provider(t).Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "../one"}), schema.ErrorInvalid)
	if len(s.calls) != 0 {
		t.Errorf("the service was asked: %v", s.calls)
	}
}
