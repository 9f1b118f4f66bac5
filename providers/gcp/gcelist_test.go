package gcp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/schema"
)

func inOtherZone(s *schema.SliceSpec) { s.Zone = "us-east1-d" }

// stocked is a service with one machine and one group in each of two zones.
func stocked(t *testing.T) (*computeService, *Provider, []string) {
	t.Helper()
	s := newComputeService(t)
	p := s.provider(t, time.Now)
	var names []string
	for _, spec := range []schema.SliceSpec{
		gcetest.Spec("east-group", gcetest.OfTPU("v6e-16", 4), inOtherZone), gcetest.Spec("east-one", inOtherZone),
		gcetest.Spec("west-group", gcetest.OfTPU("v6e-16", 4)), gcetest.Spec("west-one"),
	} {
		carry(t, p, spec)
		if spec.Hosts > 1 {
			s.fill(spec, "RUNNING")
		} else {
			s.do(func() { s.instances[spec.Zone+"/"+spec.Name].Status = new("RUNNING") })
		}
		names = append(names, spec.Name)
	}
	s.do(func() { s.calls = nil })
	return s, p, names
}

func namesIn(inventory schema.Inventory) []string {
	var names []string
	for _, each := range inventory.Slices {
		names = append(names, each.Spec.Name)
	}
	return names
}

func TestComputeInventoryIsOnePassWhateverTheNumber(t *testing.T) {
	s, p, names := stocked(t)
	inventory, err := p.Inventory(t.Context(), "stack-a")
	if err != nil || !slices.Equal(namesIn(inventory), names) {
		t.Fatalf("listed %v, %v; want %v", namesIn(inventory), err, names)
	}
	for _, each := range inventory.Slices {
		if each.Phase != schema.SliceReady || each.CreatedAt.IsZero() {
			t.Errorf("%s is %s, created at %s: %s", each.Spec.Name, each.Phase, each.CreatedAt, each.Reason)
		}
	}
	slices.Sort(s.calls)
	if want := []string{"groups.list", "instances.list", "templates.list"}; !slices.Equal(s.calls, want) {
		t.Errorf("it made the calls %v, want %v", s.calls, want)
	}
}

func TestComputeInventoryReadsAllPages(t *testing.T) {
	s, p, names := stocked(t)
	s.do(func() { s.perPage = 1 })
	inventory, err := p.Inventory(t.Context(), "stack-a")
	if err != nil || !slices.Equal(namesIn(inventory), names) {
		t.Errorf("listed %v, %v; want %v", namesIn(inventory), err, names)
	}
	if n := s.counts("instances.list"); n != 10 {
		t.Errorf("10 machines in pages of one took %d calls", n)
	}
	for _, each := range inventory.Slices {
		if each.Phase != schema.SliceReady {
			t.Errorf("%s is %s: %s", each.Spec.Name, each.Phase, each.Reason)
		}
	}
}

func TestComputeZoneThatCannotBeReachedIsUnlisted(t *testing.T) {
	s, p, names := stocked(t)
	s.do(func() { s.unreachable = []string{"us-west4-a"} })
	inventory, err := p.Inventory(t.Context(), "stack-a")
	if err != nil {
		t.Fatal(err)
	}
	if got := namesIn(inventory); !slices.Equal(got, names[:2]) {
		t.Errorf("listed %v, want %v", got, names[:2])
	}
	if len(inventory.Unlisted) != 1 || inventory.Unlisted["us-west4-a"] == "" {
		t.Errorf("unlisted is %v, want us-west4-a", inventory.Unlisted)
	}
	s.do(func() { s.unreachable = nil })
	if inventory, err = p.Inventory(t.Context(), "stack-a"); err != nil || !slices.Equal(namesIn(inventory), names) || inventory.Unlisted != nil {
		t.Errorf("afterwards it lists %v, without %v, %v", namesIn(inventory), inventory.Unlisted, err)
	}
}

func TestComputeListsThatFailAreErrors(t *testing.T) {
	for _, method := range []string{"instances.list", "groups.list", "templates.list"} {
		for _, test := range []struct {
			fail  computeFail
			kind  schema.ErrorKind
			calls int
		}{
			{computeFail{503, "backendError", "later"}, schema.ErrorUnavailable, gcpengine.ReadTries},
			{computeFail{500, "internalError", "oops"}, schema.ErrorUnavailable, gcpengine.ReadTries},
			{computeFail{403, "forbidden", "Required 'compute.instances.list' permission for 'projects/p'"}, schema.ErrorPermission, 1},
			{computeFail{401, "authError", "Invalid Credentials"}, schema.ErrorPermission, 1},
		} {
			t.Run(fmt.Sprintf("%s %d", method, test.fail.status), func(t *testing.T) {
				s, p, _ := stocked(t)
				s.do(func() {
					s.reject = func(called string) *computeFail {
						if called == method {
							return &test.fail
						}
						return nil
					}
				})
				inventory, err := p.Inventory(t.Context(), "stack-a")
				if providers.KindOf(err) != test.kind || err == nil || len(inventory.Slices) > 0 {
					t.Errorf("listed %v, %v; want an error of kind %s", namesIn(inventory), err, test.kind)
				}
				if n := s.counts(method); n != test.calls {
					t.Errorf("it was asked %d times, want %d", n, test.calls)
				}
			})
		}
	}
}

func TestComputeListThatFailsOnceIsReadAgain(t *testing.T) {
	s, p, names := stocked(t)
	failed := map[string]bool{}
	s.do(func() {
		s.reject = func(method string) *computeFail {
			if !failed[method] {
				failed[method] = true
				return &computeFail{http.StatusBadGateway, "", "try again"}
			}
			return nil
		}
	})
	inventory, err := p.Inventory(t.Context(), "stack-a")
	if err != nil || !slices.Equal(namesIn(inventory), names) {
		t.Errorf("listed %v, %v; want %v", namesIn(inventory), err, names)
	}
}

func TestComputeTemplatesThatAreNotWholeAreAnError(t *testing.T) {
	s, p, _ := stocked(t)
	s.do(func() { s.partial = &computepb.Warning{Code: new("UNREACHABLE"), Message: new("half of it")} })
	if _, err := p.Inventory(t.Context(), "stack-a"); err == nil || !strings.Contains(err.Error(), "half of it") {
		t.Errorf("got %v", err)
	}
}

func TestComputeForeignResourcesAreNeitherListedNorDeleted(t *testing.T) {
	s, p, _ := stocked(t)
	inventory, err := p.Inventory(t.Context(), "stack-b")
	if err != nil || len(inventory.Slices) != 0 || inventory.Foreign != 4 {
		t.Errorf("another stack's inventory is %v with %d foreign, %v", namesIn(inventory), inventory.Foreign, err)
	}
	s.do(func() {
		s.instances["us-west4-a/bare"] = &computepb.Instance{Name: new("bare"), Zone: new("zones/us-west4-a"), Status: new("RUNNING")}
		s.groups["us-west4-a/bare"] = &computepb.InstanceGroupManager{Name: new("bare"), Zone: new("zones/us-west4-a")}
	})
	before := len(s.left())
	for _, name := range []string{"west-one", "west-group"} {
		if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-b", Name: name}); providers.KindOf(err) != schema.ErrorPermission {
			t.Errorf("delete of another stack's %s: %v", name, err)
		}
	}
	err = p.engines[schema.EngineGCE].Delete(t.Context(), "stack-a", gcpengine.Place{Engine: schema.EngineGCE, Zone: "us-west4-a", Name: "bare"})
	if apierror.KindOf(err) != schema.ErrorPermission {
		t.Errorf("delete of what has no mark: %v", err)
	}
	if after := len(s.left()); after != before {
		t.Errorf("there were %d resources and are %d: %v", before, after, s.left())
	}
}

func TestComputeCopiesOfASliceAreNotTheSlice(t *testing.T) {
	s, p, names := stocked(t)
	s.do(func() {
		copied := proto.CloneOf(s.instances["us-west4-a/west-one"])
		copied.Name = new("copied-by-a-user")
		s.instances["us-west4-a/copied-by-a-user"] = copied
	})
	inventory, err := p.Inventory(t.Context(), "stack-a")
	if err != nil || !slices.Equal(namesIn(inventory), names) {
		t.Errorf("listed %v, %v; want %v", namesIn(inventory), err, names)
	}
}

func TestComputeMarksThatCannotBeRead(t *testing.T) {
	for _, test := range []struct {
		name, status string
		listed       bool
	}{
		{"of one that lives leave it out", "RUNNING", false},
		{"of one that is coming leave it out", "STAGING", false},
		{"of one that is dead is listed, to be deleted", "TERMINATED", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, p, names := stocked(t)
			s.do(func() {
				i := s.instances["us-west4-a/west-one"]
				i.Status, i.Metadata = &test.status, &computepb.Metadata{}
			})
			inventory, err := p.Inventory(t.Context(), "stack-a")
			if test.listed {
				if err != nil || !slices.Equal(namesIn(inventory), names) {
					t.Errorf("listed %v, %v; want %v", namesIn(inventory), err, names)
				}
				return
			}
			leftOut := func(item schema.SkippedItem) bool {
				return item.Name == "west-one" && item.Reason == schema.SkipUnreadable
			}
			if err != nil || !slices.ContainsFunc(inventory.Skipped, leftOut) {
				t.Errorf("left out %+v, %v; want west-one among them", inventory.Skipped, err)
			}
			others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "west-one" })
			if !slices.Equal(namesIn(inventory), others) {
				t.Errorf("listed %v, want %v", namesIn(inventory), others)
			}
		})
	}
}

func TestComputeListEndsWithItsContext(t *testing.T) {
	s, p, _ := stocked(t)
	s.do(func() { s.reject = func(string) *computeFail { return &computeFail{503, "", "later"} } })
	ctx, cancel := contextWithCause(t)
	cancel(errors.New("leaving"))
	if _, err := p.Inventory(ctx, "stack-a"); err == nil || !strings.Contains(err.Error(), "leaving") {
		t.Errorf("got %v, want the cause", err)
	}
}
