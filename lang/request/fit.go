package request

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// NeverFits is why jobs that are placed together can never be, whatever else
// ends, "" if they may. It knows limits only, not what the cloud has.
func (c *Context) NeverFits(jobs []*schema.Job, group *schema.JobGroup) string {
	for _, why := range []string{c.overReservations(jobs), c.overProviders(jobs), c.overNamespaces(jobs), c.apart(jobs, group)} {
		if why != "" {
			return why
		}
	}
	return ""
}

func (c *Context) overReservations(jobs []*schema.Job) string {
	for i := range c.Stack.Reservations {
		pool := &c.Stack.Reservations[i]
		whole, cores := 0, 0.0
		for _, j := range jobs {
			switch r := &j.Resources; {
			case r.Reservation != pool.Addr.Scoped():
			case r.Packed:
				cores += r.CPU * float64(r.Slices)
			default:
				whole += r.Slices
			}
		}
		room := float64(pool.Max.Slices-whole) * pool.Max.CPU
		switch {
		case whole > pool.Max.Slices:
			return fmt.Sprintf("together the jobs need %d slices of %s, which has %d at most", whole, pool.Addr, pool.Max.Slices)
		case cores > 0 && pool.Max.CPU > 0 && cores > room:
			return fmt.Sprintf("together the jobs need %g cores of %s, which has %g at most", cores, pool.Addr, room)
		}
	}
	return ""
}

// needs is what jobs take at once.
type needs struct {
	slices, chips, gpus int     // GPUs are among the chips
	cpu                 float64 // cores of machines without TPU
	memory              schema.Bytes
}

func needsOf(jobs []*schema.Job, counted func(*schema.Job) bool) needs {
	var n needs
	for _, j := range jobs {
		r := &j.Resources
		if !counted(j) {
			continue
		}
		of := least(r)
		n.slices, n.chips, n.gpus, n.cpu, n.memory = n.slices+of.slices, n.chips+of.chips, n.gpus+of.gpus, n.cpu+of.cpu, n.memory+of.memory
	}
	return n
}

func (c *Context) overProviders(jobs []*schema.Job) string {
	for i := range c.Stack.Providers {
		p := &c.Stack.Providers[i]
		need := needsOf(jobs, func(j *schema.Job) bool { return j.Resources.Provider == p.Name && j.Resources.Reservation == "" })
		for _, j := range jobs {
			if r := &j.Resources; r.Provider == p.Name && r.Reservation == "" && !hasOneOf(p, r.Alternatives()) {
				return fmt.Sprintf("a task needs %s, and provider %s has %s", gpusOf(r), p.Name, p.GPU)
			}
		}
		switch {
		case p.Slices > 0 && need.slices > p.Slices:
			return fmt.Sprintf("%d slices are needed at once, and provider %s has %d at most", need.slices, p.Name, p.Slices)
		case p.GPU.Count > 0 && need.gpus > p.GPU.Count:
			return fmt.Sprintf("%d GPUs are needed at once, and provider %s has %d at most", need.gpus, p.Name, p.GPU.Count)
		case p.CPU > 0 && need.cpu > p.CPU:
			return fmt.Sprintf("%g cores are needed at once, and provider %s has %g at most", need.cpu, p.Name, p.CPU)
		case p.Memory > 0 && need.memory > p.Memory:
			return fmt.Sprintf("%s of memory are needed at once, and provider %s has %s at most", need.memory, p.Name, p.Memory)
		}
	}
	return ""
}

// hasOneOf reports whether a provider has GPUs of the type of one of several alternatives,
// or one of them has none.
func hasOneOf(p *schema.Provider, all []schema.Accelerator) bool {
	return slices.ContainsFunc(all, func(a schema.Accelerator) bool { return p.GPU.Has(a.GPU()) })
}

// gpusOf are the GPUs of all alternatives for people.
func gpusOf(r *schema.Resources) string {
	var texts []string
	for _, a := range r.Alternatives() {
		texts = append(texts, a.GPU().String())
	}
	return strings.Join(texts, " or ")
}

// least is what the alternatives of a job need at least, of each amount: what is more than
// a limit then can be had on none of them.
func least(r *schema.Resources) needs {
	var n needs
	for i, a := range r.Alternatives() {
		of := needsOn(r, a)
		if i == 0 {
			n = of
			continue
		}
		n.chips, n.gpus, n.cpu, n.memory = min(n.chips, of.chips), min(n.gpus, of.gpus), min(n.cpu, of.cpu), min(n.memory, of.memory)
	}
	return n
}

func needsOn(r *schema.Resources, a schema.Accelerator) needs {
	n := needs{slices: r.Slices}
	if shape, err := accelerators.Parse(a.TPU()); err == nil {
		n.chips = r.Slices * shape.Chips
		return n
	}
	n.gpus, n.chips = r.Slices*a.GPU().Count, r.Slices*a.GPU().Count
	n.cpu, n.memory = float64(r.Slices)*r.CPU, schema.Bytes(r.Slices)*r.Memory
	return n
}

func (c *Context) overNamespaces(jobs []*schema.Job) string {
	for i := range c.Stack.Namespaces {
		ns := &c.Stack.Namespaces[i]
		need := needsOf(jobs, func(j *schema.Job) bool { return j.Namespace == ns.Addr.Scoped() })
		if why := over(need, ns.MaxChips, ns.MaxCPU); why != "" {
			return fmt.Sprintf("%s, which is more than %s may have", why, ns.Addr)
		}
		for _, user := range ns.Users {
			need := needsOf(jobs, func(j *schema.Job) bool { return j.Namespace == ns.Addr.Scoped() && j.User == user.Name })
			if why := over(need, user.MaxChips, user.MaxCPU); why != "" {
				return fmt.Sprintf("%s, which is more than the user %s may have in %s", why, user.Name, ns.Addr)
			}
		}
	}
	return ""
}

func over(need needs, chips int, cpu float64) string {
	switch {
	case chips > 0 && need.chips > chips:
		return fmt.Sprintf("%d chips are needed at once, the limit is %d", need.chips, chips)
	case cpu > 0 && need.cpu > cpu:
		return fmt.Sprintf("%g cores are needed at once, the limit is %g", need.cpu, cpu)
	}
	return ""
}

// apart is why jobs that must be near each other cannot be.
func (c *Context) apart(jobs []*schema.Job, group *schema.JobGroup) string {
	if group == nil || !group.SameRegion && !group.SameZone {
		return ""
	}
	at := slices.IndexFunc(c.Stack.Providers, func(p schema.Provider) bool { return p.Name == schema.ProviderGCP })
	if at < 0 {
		return ""
	}
	var common, first []string
	for _, j := range jobs {
		places := c.placesOf(&c.Stack.Providers[at], j, group.SameZone)
		switch {
		case len(places) == 0: // anywhere, or not known
			continue
		case common == nil:
			common, first = places, places
			continue
		}
		common = slices.DeleteFunc(slices.Clone(common), func(place string) bool { return !slices.Contains(places, place) })
		if len(common) == 0 {
			what := "region"
			if group.SameZone {
				what = "zone"
			}
			return fmt.Sprintf("no %s has room for all of the group: %s can be in %s, others only in %s",
				what, j.Addr.LaunchedName(), strings.Join(places, ", "), strings.Join(first, ", "))
		}
	}
	return ""
}

// zonesOfAny are the zones of all alternatives, those of better ones first. The accelerator
// of machines without one is their machine type.
func zonesOfAny(p *schema.Provider, r *schema.Resources, stated, regions []string) []string {
	if len(r.Accelerators) == 0 {
		return accelerators.CandidateZones(p, r.Kind(), stated, regions)
	}
	var found []string
	for _, a := range r.Accelerators {
		for _, zone := range accelerators.CandidateZones(p, string(a), stated, regions) {
			if !slices.Contains(found, zone) {
				found = append(found, zone)
			}
		}
	}
	return found
}

// placesOf are the zones, or regions, where a job may be.
func (c *Context) placesOf(p *schema.Provider, j *schema.Job, zones bool) []string {
	r := &j.Resources
	if r.Provider != schema.ProviderGCP {
		return nil
	}
	stated, regions := r.Zones, r.Regions
	for i := range c.Stack.Reservations {
		if pool := &c.Stack.Reservations[i]; r.Reservation == pool.Addr.Scoped() {
			stated, regions = pool.Zones, pool.Regions
		}
	}
	found := zonesOfAny(p, r, stated, regions)
	if zones {
		return found
	}
	var names []string
	for _, zone := range found {
		if region := accelerators.RegionOf(zone); !slices.Contains(names, region) {
			names = append(names, region)
		}
	}
	return names
}
