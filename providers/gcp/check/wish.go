package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/machinetype"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// wish is what a job or reservation asks of the cloud.
type wish struct {
	addr   schema.Address
	prefix string // of its attributes: "resources." of a job, "" of a reservation
	shape  string // the attribute that its shape is in
	spec   schema.SliceSpec
	needs  needs
	zones  []string // where it may be, best first
	stated bool     // it states one itself
	from   *schema.Provider
}

func providerOf(desired *schema.Desired) *schema.Provider {
	for i := range desired.Providers {
		if desired.Providers[i].Name == schema.ProviderGCP {
			return &desired.Providers[i]
		}
	}
	return &schema.Provider{Name: schema.ProviderGCP}
}

// wishesOf are the wishes of all jobs and reservations on Google Cloud, one for all
// instances of a block that ask for the same.
func wishesOf(desired *schema.Desired) []wish {
	from := providerOf(desired)
	var wishes []wish
	seen := map[string]bool{}
	add := func(w wish, zones, regions []string) {
		w.from, w.stated = from, len(zones) > 0
		w.spec.Provider = schema.ProviderGCP
		w.zones = accelerators.CandidateZones(from, w.spec.Kind(), zones, regions)
		w.spec.Hosts = 1
		if shape, err := accelerators.Parse(w.spec.TPU); err == nil {
			w.spec.Hosts = shape.Hosts
		}
		text, err := mark.Encode(w.spec)
		key := w.addr.Base().String() + text + strings.Join(w.zones, ",") + fmt.Sprint(w.needs)
		if err == nil && !seen[key] {
			seen[key] = true
			wishes = append(wishes, w)
		}
	}
	for i := range desired.Reservations {
		r := &desired.Reservations[i]
		if r.Provider == schema.ProviderGCP {
			spec := schema.SliceSpec{TPU: r.Min.TPU, GPU: r.Min.GPU, CPU: r.Min.CPU, Memory: r.Min.Memory, Preemptible: r.Preemptible, Cloud: r.Cloud}
			shape := "min.tpu"
			if r.Min.GPU.Count > 0 {
				shape = "min.gpu.type"
			}
			add(wish{addr: r.Addr, shape: shape, spec: spec, needs: needsIn(desired, r)}, r.Zones, r.Regions)
		}
	}
	for i := range desired.Jobs {
		j := &desired.Jobs[i]
		r := &j.Resources
		if r.Provider != schema.ProviderGCP || r.Reservation != "" {
			continue
		}
		for _, a := range r.Alternatives() {
			w, zones := wishOn(j.As(a)), r.Zones
			if len(r.Accelerators) > 0 && len(zones) > 0 { // each alternative has its own of them
				zones = accelerators.ZonesWith(string(a), zones, from.Offers)
			}
			add(w, zones, r.Regions)
		}
	}
	return wishes
}

// wishOn is the wish of a job on one of its alternatives.
func wishOn(j *schema.Job) wish {
	r := &j.Resources
	spec := schema.SliceSpec{
		TPU: r.TPU, GPU: r.GPU, CPU: r.CPU, Memory: r.Memory, MachineType: r.MachineType, Preemptible: r.Preemptible, Cloud: r.Cloud,
	}
	shape := "resources.tpu"
	switch {
	case len(r.Accelerators) > 0:
		shape = "resources.accelerators"
	case r.GPU.Count > 0 && r.MachineType == "":
		shape = "resources.gpu.type"
	case r.TPU == "":
		shape = "resources.machine_type"
	}
	return wish{addr: j.Addr, prefix: "resources.", shape: shape, spec: spec, needs: needsOf(j)}
}

// needsIn are the needs of the jobs on the machines of a reservation.
func needsIn(desired *schema.Desired, r *schema.Reservation) needs {
	all := needs{slices: 1}
	for i := range desired.Jobs {
		if j := &desired.Jobs[i]; j.Resources.Reservation != "" && schema.ScopedAddress(schema.KindReservation, j.Resources.Reservation) == r.Addr {
			all = all.with(needsOf(j))
		}
	}
	return all
}

// engineIn is the API that makes the slice in a zone.
func (w *wish) engineIn(zone string) schema.Engine {
	return cmp.Or(w.spec.Cloud.Engine, accelerators.EngineOf(w.spec.TPU, zone, w.from.Offers))
}

// onlyOn reports whether it is made by one engine wherever it is.
func (w *wish) onlyOn(engine schema.Engine) bool {
	return !slices.ContainsFunc(w.zones, func(zone string) bool { return w.engineIn(zone) != engine })
}

// kind names the shape: the TPU or machine type, with attached GPUs.
func (w *wish) kind() string {
	name := cmp.Or(w.spec.TPU, machineName(w), "its machine type")
	if gpus, ok := machinetype.GPUs(w.spec); ok && gpus.Attached {
		name = fmt.Sprintf("%s with %d %s", name, gpus.Count, gpus.Accelerator)
	}
	return name
}

// regions are those of its zones, best first.
func (w *wish) regions() []string {
	var found []string
	for _, zone := range w.zones {
		if region := accelerators.RegionOf(zone); !slices.Contains(found, region) {
			found = append(found, region)
		}
	}
	return found
}

// at points at one of its attributes, or at the provider's where it is as the
// provider has it.
func (w *wish) at(attribute string, inherited bool) providers.Problem {
	if inherited {
		return providers.Problem{Attribute: attribute}
	}
	return providers.Problem{Addr: w.addr, Attribute: w.prefix + attribute}
}

// atZones points at the attribute that states where it may be.
func (w *wish) atZones() providers.Problem {
	if !w.stated && len(w.from.Zones) == 0 {
		return w.atShape()
	}
	return w.at("zones", !w.stated)
}

func (w *wish) atShape() providers.Problem {
	return providers.Problem{Addr: w.addr, Attribute: w.shape}
}

// problemAt fills in what is wrong where a problem points.
func problemAt(at providers.Problem, summary, detail string) providers.Problem {
	at.Summary, at.Detail = summary, detail
	return at
}

func warningAt(at providers.Problem, summary, detail string) providers.Problem {
	at.Warning = true
	return problemAt(at, summary, detail)
}

// distinct are the values of all wishes, each once, in order.
func distinct[T comparable](wishes []wish, of func(*wish) []T) []T {
	var all []T
	seen := map[T]bool{}
	for i := range wishes {
		for _, v := range of(&wishes[i]) {
			if !seen[v] {
				seen[v] = true
				all = append(all, v)
			}
		}
	}
	return all
}
