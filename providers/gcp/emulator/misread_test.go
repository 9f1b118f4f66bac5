package emulator_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// listed is one list of all nodes.
func (w *world) listed() []string {
	w.t.Helper()
	names, _, _ := w.nodes(w.t.Context(), anyZone, 0)
	return names
}

// TestWrongLists has each way in which a list can be wrong be so as it says, as many
// times as was asked for, in that list only; direct reads are right meanwhile.
func TestWrongLists(t *testing.T) {
	all := []string{"n0", "n1", "n2", "n3", "n4", "n5"}
	for fault, isWrong := range map[cloud.ListFault]func(names []string) bool{
		cloud.ListEmpty: func(names []string) bool { return len(names) == 0 },
		cloud.ListShort: func(names []string) bool { return len(names) < len(all) && isPart(names, all) },
		cloud.ListZone:  func(names []string) bool { return len(names) == 0 },
		cloud.ListToken: func(names []string) bool { return slices.Equal(names, all[:3]) },
		cloud.ListStale: func(names []string) bool { return slices.Equal(names, all[:4]) },
		cloud.ListReordered: func(names []string) bool {
			return len(names) == len(all) && !slices.Equal(names, all) && isPart(names, all)
		},
		cloud.ListSlow: func(names []string) bool { return slices.Equal(names, all) }, // no time passes on a virtual clock
		cloud.ListPoisoned: func(names []string) bool {
			return len(names) == len(all)+1 && slices.ContainsFunc(all, func(name string) bool { return slices.Contains(names, "copy-of-"+name) })
		},
	} {
		t.Run(string(fault), func(t *testing.T) {
			w := newWorld(t, cloud.Scenario{Seed: 1})
			for i := range 4 {
				w.made(fmt.Sprintf("n%d", i), spot())
			}
			w.listed() // what an old list is
			w.create("n4", spot())
			w.create("n5", spot())
			w.clock.Advance(5 * time.Second)
			if err := w.emulator.Cloud().MisreadList(fault, "nodes", "", 2, 0); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if names := w.listed(); !isWrong(names) {
					t.Errorf("nodes are listed as %v", names)
				}
			}
			w.want("n3", tpuapi.Node_READY)
			if names := w.listed(); !slices.Equal(names, all) {
				t.Errorf("the third list is %v, want it right", names)
			}
			if err := w.emulator.Cloud().MisreadList(fault, "instances", "", 0, 0); err != nil {
				t.Fatal(err)
			}
			if names := w.listed(); !slices.Equal(names, all) {
				t.Errorf("nodes are listed as %v while instances are wrong", names)
			}
		})
	}
}

func isPart(names, all []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(all, name) })
}

// A wrong list ends with its time, or when it is set otherwise.
func TestWrongListsEnd(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("n0", spot())
	c := w.emulator.Cloud()
	wrong := func(lasts time.Duration) {
		t.Helper()
		if err := c.MisreadList(cloud.ListEmpty, "", "", 0, lasts); err != nil {
			t.Fatal(err)
		}
		if names := w.listed(); len(names) > 0 {
			t.Fatalf("it lists %v", names)
		}
	}
	wrong(time.Minute)
	w.clock.Advance(time.Minute)
	if names := w.listed(); len(names) != 1 {
		t.Errorf("after its time it lists %v", names)
	}
	wrong(0)
	w.clock.Advance(time.Hour)
	if names := w.listed(); len(names) > 0 {
		t.Errorf("it lists %v though that was to last", names)
	}
	c.Abate()
	if names := w.listed(); len(names) != 1 {
		t.Errorf("without a wrong list it lists %v", names)
	}
	for _, rejected := range []error{
		c.MisreadList("made up", "", "", 0, 0), c.MisreadList(cloud.ListEmpty, "made up", "", 0, 0), c.MisreadList(cloud.ListZone, "", "made-up", 0, 0),
	} {
		if rejected == nil {
			t.Error("what does not exist was taken")
		}
	}
}

// A slow list takes 5 s to 20 s on a real clock, and is slow as often as was asked for.
func TestSlowListTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloud.New(cloud.Config{})
		if err := c.MisreadList(cloud.ListSlow, "nodes", "", 1, 0); err != nil {
			t.Fatal(err)
		}
		for _, want := range [][2]time.Duration{{5 * time.Second, 20 * time.Second}, {0, 0}} {
			began := time.Now()
			c.Linger(c.Misreading("nodes"))
			if took := time.Since(began); took < want[0] || took > want[1] {
				t.Errorf("it took %s, want %s", took, want)
			}
		}
	})
}

// TestWrongListsOfCompute has the other lists be wrong, each by itself.
func TestWrongListsOfCompute(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.slice()
	w.insert(spotVM("one"))
	w.clock.Advance(time.Minute)
	for _, of := range []string{"instances", "instanceGroupManagers", "instanceTemplates"} {
		before := w.countListed()
		if before[of] == 0 {
			t.Fatalf("there are no %s", of)
		}
		if err := w.emulator.Cloud().MisreadList(cloud.ListEmpty, of, "", 1, 0); err != nil {
			t.Fatal(err)
		}
		for name, n := range w.countListed() {
			if want := before[name]; name == of && n != 0 || name != of && n != want {
				t.Errorf("while %s are empty, %d %s are listed, want %d of what is right", of, n, name, want)
			}
		}
		for name, n := range w.countListed() {
			if n != before[name] {
				t.Errorf("afterwards %d %s are listed, want %d", n, name, before[name])
			}
		}
	}
}

// countListed counts what each list has.
func (w *computeWorld) countListed() map[string]int {
	w.t.Helper()
	ctx, counts := w.t.Context(), map[string]int{}
	for _, scope := range collected(w.t, w.instances.AggregatedList(ctx, &computepb.AggregatedListInstancesRequest{Project: project})) {
		counts["instances"] += len(scope.Value.GetInstances())
	}
	for _, scope := range collected(w.t, w.groups.AggregatedList(ctx, &computepb.AggregatedListInstanceGroupManagersRequest{Project: project})) {
		counts["instanceGroupManagers"] += len(scope.Value.GetInstanceGroupManagers())
	}
	counts["instanceTemplates"] = len(collected(w.t, w.templates.List(ctx, &computepb.ListInstanceTemplatesRequest{Project: project})))
	return counts
}
