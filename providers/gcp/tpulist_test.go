package gcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// wantKind returns for how long the error is to be left alone.
func wantKind(t *testing.T, err error, want schema.ErrorKind, words ...string) (after time.Duration) {
	t.Helper()
	classified, ok := errors.AsType[*providers.Error](err)
	if !ok {
		t.Fatalf("the error is %v, want a providers.Error of kind %s", err, want)
	}
	if classified.Kind != want {
		t.Errorf("the error %q is of kind %s, want %s", err, classified.Kind, want)
	}
	for _, each := range words {
		if !strings.Contains(err.Error(), each) {
			t.Errorf("the error %q does not say %q", err, each)
		}
	}
	return classified.After
}

func names(inventory schema.Inventory) []string {
	var found []string
	for _, each := range inventory.Slices {
		found = append(found, each.Spec.Name)
	}
	return found
}

func TestInventoryIsOnePassOfPages(t *testing.T) {
	s := newTPUService(t)
	s.perPage = 10
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("s-%02d", i)
		want = append(want, name)
		s.setNode(name, nodeOf(t, tpuSpec(name)))
	}
	for i := range 11 {
		name := fmt.Sprintf("s-%02d", i)
		s.setQueued(name, queuedOf(t, tpuSpec(name)))
	}
	s.setNode("theirs", nodeOf(t, tpuSpec("theirs", func(spec *schema.SliceSpec) { spec.Stack = "stack-b" })))
	unlabelled := queuedOf(t, tpuSpec("unlabelled"))
	unlabelled.GetTpu().GetNodeSpec()[0].GetNode().Labels = nil
	s.setQueued("unlabelled", unlabelled) // one with its node
	s.setNode("unlabelled", &tpuapi.Node{})
	inventory, err := s.provider(t).Inventory(t.Context(), "stack-a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, names(inventory)); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	if inventory.Foreign != 2 {
		t.Errorf("%d are foreign, want 2", inventory.Foreign)
	}
	// The queue comes first: see list.
	wantCalls := []string{"ListQueuedResources", "ListQueuedResources", "ListNodes", "ListNodes", "ListNodes"}
	if !slices.Equal(s.calls, wantCalls) {
		t.Errorf("the calls are %v, want %v", s.calls, wantCalls)
	}
}

func TestInventoryOfAnyStack(t *testing.T) {
	s := newTPUService(t)
	s.setNode("one", nodeOf(t, tpuSpec("one")))
	s.setNode("two", nodeOf(t, tpuSpec("two", func(spec *schema.SliceSpec) { spec.Stack = "stack-b" })))
	s.setNode("unlabelled", &tpuapi.Node{})
	inventory, err := s.provider(t).Inventory(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := names(inventory); !slices.Equal(got, []string{"one", "two"}) || inventory.Foreign != 1 {
		t.Errorf("it lists %v and %d foreign", got, inventory.Foreign)
	}
}

// A list that breaks off in the middle is an error, whatever came before.
func TestListThatFailsInTheMiddle(t *testing.T) {
	for method, pages := range map[string]int{"ListNodes": 2, "ListQueuedResources": 1} {
		for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.Unknown, codes.DeadlineExceeded, codes.PermissionDenied} {
			t.Run(method+" "+code.String(), func(t *testing.T) {
				s := newTPUService(t)
				s.perPage = 1
				for _, name := range []string{"one", "two", "three"} {
					s.setNode(name, nodeOf(t, tpuSpec(name)))
					s.setQueued(name, queuedOf(t, tpuSpec(name)))
				}
				seen := 0
				s.reject = func(called string) error {
					if called == method {
						if seen++; seen > pages {
							return status.Error(code, "no")
						}
					}
					return nil
				}
				inventory, err := s.provider(t).Inventory(t.Context(), "stack-a")
				kind := schema.ErrorUnavailable
				if code == codes.PermissionDenied {
					kind = schema.ErrorPermission
				}
				wantKind(t, err, kind, "no")
				if len(inventory.Slices) != 0 {
					t.Errorf("with its error came %v", inventory.Slices)
				}
			})
		}
	}
}

// What passes is tried again, not for ever, and a call that is rejected is not.
func TestReadsAreTriedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		code        codes.Code
		times, want int
		works       bool
	}{
		"passes":       {codes.Unavailable, gcpengine.ReadTries - 1, gcpengine.ReadTries, true},
		"goes on":      {codes.Unavailable, 100, gcpengine.ReadTries, false},
		"is refused":   {codes.PermissionDenied, 100, 1, false},
		"is exhausted": {codes.ResourceExhausted, 100, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			left := test.times
			s.reject = func(string) error {
				if left--; left >= 0 {
					return status.Error(test.code, "try again")
				}
				return nil
			}
			_, err := s.provider(t).Inventory(t.Context(), "stack-a")
			if works := err == nil; works != test.works {
				t.Errorf("the error is %v", err)
			}
			if got := s.count("ListQueuedResources"); got != test.want {
				t.Errorf("it was asked for %d times, want %d", got, test.want)
			}
		})
	}
}

// Of a zone that one of the two lists left out nothing is said: a queued
// resource whose node was not listed looks dead.
func TestUnreachableZoneIsUnlisted(t *testing.T) {
	for _, list := range []string{"nodes", "queued"} {
		t.Run(list, func(t *testing.T) {
			s := newTPUService(t)
			here, there := tpuSpec("here"), tpuSpec("there", func(spec *schema.SliceSpec) { spec.Zone = "us-central1-a" })
			s.setNode("here", nodeOf(t, here))
			n, q := nodeOf(t, there), queuedOf(t, there)
			if list == "nodes" {
				s.queued[q.GetName()] = q
			} else {
				s.nodes[n.GetName()] = n
			}
			s.unreachable[list] = []string{"projects/acme/locations/us-central1-a"}
			p := s.provider(t)
			inventory, err := p.Inventory(t.Context(), "stack-a")
			if err != nil {
				t.Fatal(err)
			}
			if got := names(inventory); !slices.Equal(got, []string{"here"}) {
				t.Errorf("it lists %v", got)
			}
			if len(inventory.Unlisted) != 1 || inventory.Unlisted["us-central1-a"] == "" {
				t.Errorf("unlisted is %v", inventory.Unlisted)
			}
			// Nor may it be said that it is not there.
			wantKind(t, p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "there"}), schema.ErrorUnavailable, "us-central1-a")
		})
	}
}

// What lives and cannot be understood stops everything, and says what to do;
// what is dead or going has to go anyhow.
func TestUnreadableSpec(t *testing.T) {
	damages := map[string]struct {
		damage func(*tpuapi.Node)
		says   string
		copied bool
	}{
		"no metadata":    {func(n *tpuapi.Node) { n.Metadata = nil }, "has no fray-spec", false},
		"no JSON":        {func(n *tpuapi.Node) { n.Metadata[mark.SpecKey] = "{" }, "cannot be read", false},
		"another name":   {func(n *tpuapi.Node) { n.Labels[mark.SliceLabel] = "two" }, "label fray-slice", false},
		"no name":        {func(n *tpuapi.Node) { delete(n.Labels, mark.SliceLabel) }, "label fray-slice", false},
		"copied by hand": {func(n *tpuapi.Node) { proto.Merge(n, nodeOf(t, tpuSpec("original"))) }, "of slice original", true},
		"another stack's spec": {func(n *tpuapi.Node) {
			n.Metadata = nodeOf(t, tpuSpec("one", func(spec *schema.SliceSpec) { spec.Stack = "stack-b" })).Metadata
		}, "label fray-stack", false},
		"another zone": {func(n *tpuapi.Node) {
			n.Metadata = nodeOf(t, tpuSpec("one", func(spec *schema.SliceSpec) { spec.Zone = "us-central1-a" })).Metadata
		}, "is not that slice", true},
	}
	for name, test := range damages {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			n := nodeOf(t, tpuSpec("one"))
			test.damage(n)
			s.setNode("one", n)
			s.setNode("two", nodeOf(t, tpuSpec("two")))
			p := s.provider(t)
			inventory, err := p.Inventory(t.Context(), "stack-a")
			want := schema.SkippedItem{Name: "one", Zone: testZone, Reason: schema.SkipUnreadable}
			if test.copied {
				want.Reason = schema.SkipCopy
			}
			if err != nil || len(inventory.Skipped) != 1 || len(inventory.Slices) != 1 || inventory.Slices[0].Spec.Name != "two" {
				t.Fatalf("got %+v, %v: want one skipped and the other listed", inventory, err)
			}
			got := inventory.Skipped[0]
			for _, says := range []string{test.says, "take its label fray-stack away"} {
				if !strings.Contains(got.Text, says) {
					t.Errorf("it says %q, want %q in it", got.Text, says)
				}
			}
			if got.Text = ""; got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if _, err := p.Inventory(t.Context(), "stack-b"); err != nil {
				t.Errorf("another stack is disturbed: %v", err)
			}
			for state, phase := range map[tpuapi.Node_State]schema.SlicePhase{
				tpuapi.Node_TERMINATED: schema.SliceDead, tpuapi.Node_DELETING: schema.SliceDeleting,
			} {
				s.do(func() { n.State = state })
				inventory, err := p.Inventory(t.Context(), "stack-a")
				if err != nil {
					t.Fatal(err)
				}
				if test.copied {
					if len(inventory.Skipped) != 1 {
						t.Errorf("a copy that is %s is listed: %+v", phase, inventory)
					}
					continue
				}
				got := inventory.Slices[0]
				if got.Phase != phase || got.Spec.Name != "one" || got.Spec.TPU != "v5litepod-16" || got.Spec.Hosts != 4 ||
					got.Spec.Zone != testZone || got.Spec.Owner != (schema.Address{}) {
					t.Errorf("it is listed as %+v", got)
				}
			}
		})
	}
}

// A spec that was read is read again as soon as it has changed.
func TestChangedSpecIsReadAgain(t *testing.T) {
	s := newTPUService(t)
	s.setNode("one", nodeOf(t, tpuSpec("one")))
	p := s.provider(t)
	for _, index := range []int{1, 1, 2} {
		want := tpuSpec("one", func(spec *schema.SliceSpec) { spec.Index = index })
		s.do(func() { s.setNode("one", nodeOf(t, want)) })
		inventory, err := p.Inventory(t.Context(), "stack-a")
		if err != nil {
			t.Fatal(err)
		}
		if got := inventory.Slices[0].Spec; got != want {
			t.Errorf("it is %+v, want %+v", got, want)
		}
	}
	s.do(func() { s.node("one").Labels[mark.SliceLabel] = "two" })
	if inventory, err := p.Inventory(t.Context(), "stack-a"); err != nil || len(inventory.Skipped) != 1 {
		t.Errorf("a changed label went unseen: %+v, %v", inventory, err)
	}
}
