package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/machinetype"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// checkPageSize is the most that the service returns at once.
const checkPageSize = 1000

// placesFound is what was learnt of zones.
type placesFound struct {
	zones map[string]bool            // of Compute Engine; nil: not known
	types map[string]map[string]bool // of the TPU API by zone; a zone that is missing is not known
	wrong map[string]error           // why the TPU API knows no such zone
}

// places looks up the zones that there are, and the TPU types in those that are
// asked of the TPU API.
func (c *checker) places(ctx context.Context) *placesFound {
	found := &placesFound{types: map[string]map[string]bool{}, wrong: map[string]error{}}
	var group sync.WaitGroup
	group.Go(func() { found.zones = c.computeZones(ctx) })
	zones := distinct(c.wishes, func(w *wish) []string { return w.zonesOf(schema.EngineTPU) })
	var mu sync.Mutex
	group.Go(func() {
		eachAtOnce(c, zones, func(zone string) {
			types, err := c.tpuTypes(ctx, zone)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				found.wrong[zone] = err
				return
			}
			found.types[zone] = types
		})
	})
	group.Wait()
	return found
}

// zonesOf are the zones where an engine makes it.
func (w *wish) zonesOf(engine schema.Engine) []string {
	return slices.DeleteFunc(slices.Clone(w.zones), func(zone string) bool { return w.engineIn(zone) != engine })
}

func (c *checker) computeZones(ctx context.Context) map[string]bool {
	zones := map[string]bool{}
	for token := ""; ; {
		var page struct {
			Items []struct {
				Name string `json:"name"`
			} `json:"items"`
			Next string `json:"nextPageToken"`
		}
		if err := c.rest.get(ctx, "compute", c.computePath("zones?maxResults=500&pageToken="+token), &page); err != nil {
			c.passes(err)
			return nil
		}
		for _, zone := range page.Items {
			zones[zone.Name] = true
		}
		if token = page.Next; token == "" {
			break
		}
	}
	if len(zones) == 0 {
		return nil // of a service that does not know the call
	}
	return zones
}

func (c *checker) tpuTypes(ctx context.Context, zone string) (map[string]bool, error) {
	if c.tpu == nil {
		return nil, errors.New("the TPU API is not reached")
	}
	types := map[string]bool{}
	for token := ""; ; {
		page, err := c.tpu.ListAcceleratorTypes(ctx, &tpuapi.ListAcceleratorTypesRequest{
			Parent: c.location(zone), PageSize: checkPageSize, PageToken: token,
		})
		if err != nil {
			c.passes(apierror.Interrupted(ctx, err))
			return nil, err
		}
		for _, each := range page.GetAcceleratorTypes() {
			for _, name := range []string{each.GetType(), path.Base(each.GetName())} {
				if shape, err := accelerators.Parse(name); err == nil {
					types[shape.Type] = true
				}
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return types, nil
		}
	}
}

func (c *checker) location(zone string) string {
	return "projects/" + c.config.Project + "/locations/" + zone
}

// unknown reports whether there is no such zone, as far as an engine knows.
func (f *placesFound) unknown(zone string, engine schema.Engine) bool {
	listed := f.zones == nil || f.zones[zone]
	if engine == schema.EngineGCE {
		return !listed
	}
	err := f.wrong[zone]
	if err == nil {
		return false
	}
	// The TPU API rejects zones that do not exist with the text for those that
	// the account may not see. It has zones of its own, which Compute Engine hides.
	a, _ := apierror.AnswerOf(err)
	switch a.Code {
	case codes.NotFound, codes.InvalidArgument:
		return true
	case codes.PermissionDenied:
		return !listed
	}
	return false
}

// shapes reports zones that do not exist, and of types that they do not have.
func (c *checker) shapes(ctx context.Context, found *placesFound) {
	machines := c.machineTypes(ctx, found)
	cards := c.acceleratorTypes(ctx, found)
	c.shapesOfGPUs()
	for i := range c.wishes {
		w := &c.wishes[i]
		var known, lacking []string
		for _, zone := range w.zones {
			engine := w.engineIn(zone)
			if found.unknown(zone, engine) {
				c.add(problemAt(w.atZones(), "No such zone", strings.TrimSpace(fmt.Sprintf(
					"There is no zone %q in project %s. %s", zone, c.config.Project, similarZones(zone, found)))))
				continue
			}
			known = append(known, zone)
			types, listed := found.types[zone]
			if engine == schema.EngineTPU && listed && !types[w.spec.TPU] || engine == schema.EngineGCE && (machines[machineIn{machineName(w), zone}] || cards[machineIn{attachedName(w), zone}]) {
				lacking = append(lacking, zone)
			}
		}
		c.lackingType(w, lacking, len(lacking) == len(known))
	}
}

// lackingType reports zones without what is asked for there, which may be all.
func (c *checker) lackingType(w *wish, lacking []string, all bool) {
	if len(lacking) == 0 {
		return
	}
	others := slices.DeleteFunc(slices.Clone(accelerators.OfferedZones(cmp.Or(w.spec.Kind(), machineName(w)), w.from.Offers)), func(zone string) bool { return slices.Contains(w.zones, zone) })
	hint := "An offer block in the provider states where else it is."
	if len(others) > 0 {
		hint = "It is offered in " + strings.Join(others, ", ") + "."
	}
	if all {
		c.add(problemAt(w.atShape(), "Type is not offered", fmt.Sprintf("%s cannot be had in %s in project %s. %s",
			w.kind(), strings.Join(lacking, ", "), c.config.Project, hint)))
		return
	}
	c.add(warningAt(w.atZones(), "Type is not offered", fmt.Sprintf("%s cannot be had in %s in project %s, so nothing comes up there: leave it out of zones.",
		w.kind(), strings.Join(lacking, ", "), c.config.Project)))
}

// similarZones names the zones of the region that was meant.
func similarZones(zone string, found *placesFound) string {
	var near []string
	for _, known := range slices.Sorted(maps.Keys(found.zones)) {
		if accelerators.RegionOf(known) == accelerators.RegionOf(zone) || accelerators.RegionOf(known) == zone {
			near = append(near, known)
		}
	}
	if len(near) == 0 {
		return "`gcloud compute zones list` lists those that there are."
	}
	return "There are " + strings.Join(near, ", ") + "."
}

// machineIn is a machine type in a zone.
type machineIn struct{ name, zone string }

// machineName is the type of a wish's machines on Compute Engine, "" for none.
func machineName(w *wish) string {
	name, err := machinetype.Of(w.spec)
	if err != nil {
		return ""
	}
	return name
}

// machineTypes looks up the machine types that are asked of Compute Engine and
// returns those that a zone does not have.
func (c *checker) machineTypes(ctx context.Context, found *placesFound) map[machineIn]bool {
	asked := distinct(c.wishes, func(w *wish) []machineIn {
		var of []machineIn
		for _, zone := range w.zonesOf(schema.EngineGCE) {
			name, err := machinetype.Of(w.spec)
			if err != nil {
				c.add(problemAt(w.atShape(), "Type is not offered", detailOf(err)))
			} else if !found.unknown(zone, schema.EngineGCE) {
				of = append(of, machineIn{name, zone})
			}
		}
		return of
	})
	lacking := map[machineIn]bool{}
	var mu sync.Mutex
	eachAtOnce(c, asked, func(m machineIn) {
		var is machineCatalog
		err := c.rest.get(ctx, "compute", c.computePath("zones/"+m.zone+"/machineTypes/"+m.name), &is)
		c.passes(err)
		if err == nil {
			c.compareGPUs(m.name, &is)
		}
		if isMissing(err) {
			mu.Lock()
			defer mu.Unlock()
			lacking[m] = true
		}
	})
	return lacking
}

// detailOf is an error as the detail of a diagnostic.
func detailOf(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// runtimes reports runtime versions that the TPU API does not know.
func (c *checker) runtimes(ctx context.Context, found *placesFound) {
	type version struct{ name, zone string }
	asked := map[version][]*wish{}
	for i := range c.wishes {
		w := &c.wishes[i]
		for _, zone := range w.zonesOf(schema.EngineTPU) {
			if name := w.spec.Cloud.RuntimeVersion; name != "" && found.types[zone] != nil {
				asked[version{name, zone}] = append(asked[version{name, zone}], w)
				break // they are the same everywhere
			}
		}
	}
	eachAtOnce(c, slices.Collect(maps.Keys(asked)), func(v version) {
		_, err := c.tpu.GetRuntimeVersion(ctx, &tpuapi.GetRuntimeVersionRequest{Name: c.location(v.zone) + "/runtimeVersions/" + v.name})
		a, _ := apierror.AnswerOf(err)
		if err == nil || a.Code != codes.NotFound && a.Code != codes.InvalidArgument {
			c.passes(apierror.Interrupted(ctx, err))
			return
		}
		detail := fmt.Sprintf("The TPU API has no runtime version %q in %s.%s Leave runtime_version out for the one of the generation.",
			v.name, v.zone, c.similarRuntimes(ctx, v.zone, v.name))
		for _, w := range asked[v] {
			c.add(problemAt(w.at("runtime_version", w.from.Cloud.RuntimeVersion == v.name), "Unknown runtime version", detail))
		}
	})
}

// similarRuntimes names a few versions, those that begin alike first.
func (c *checker) similarRuntimes(ctx context.Context, zone, name string) string {
	const most = 5
	page, err := c.tpu.ListRuntimeVersions(ctx, &tpuapi.ListRuntimeVersionsRequest{Parent: c.location(zone), PageSize: checkPageSize})
	if err != nil || len(page.GetRuntimeVersions()) == 0 {
		return ""
	}
	var versions []string
	for _, each := range page.GetRuntimeVersions() {
		versions = append(versions, path.Base(each.GetName()))
	}
	slices.Sort(versions)
	slices.SortStableFunc(versions, func(a, b string) int { return alike(b, name) - alike(a, name) })
	return " There are " + strings.Join(versions[:min(most, len(versions))], ", ") + " and others."
}

// alike is how long two texts begin alike.
func alike(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
