package schema

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// tpu decodes a TPU type to its canonical form.
func (e *evaluator) tpu(s scope, x *expression) string {
	return get(e, s, x, func(v cty.Value) (string, error) {
		name, err := asString(v)
		if err != nil {
			return "", err
		}
		shape, err := ParseAccelerator(name)
		return shape.Type, err
	}, "")
}

// checkShape reports attributes of resources that exclude each other, and zones
// that cannot be had.
func (e *evaluator) checkShape(b *block, r *Resources) {
	if x := b.attr("tpu"); x != nil && r.TPU != "" {
		for _, name := range []string{"cpu", "memory", "disk", "machine_type"} {
			if other := b.attr(name); other != nil {
				e.errorAt(other.rng, "TPU and "+name, fmt.Sprintf("A TPU slice brings its own machines: remove %s, or remove tpu for a machine without TPU.", name))
			}
		}
	}
	switch r.Provider {
	case ProviderLocal:
		for _, name := range append([]string{"zones", "regions", "machine_type"}, cloudNames()...) {
			if x := b.attr(name); x != nil && !e.opts.Local {
				e.errorAt(x.rng, "Not on this machine", fmt.Sprintf("The provider local has no %s: remove it, or choose provider = \"gcp\".", name))
			}
		}
	case ProviderGCP:
		e.checkZones(b, r)
	}
}

// checkPlaced reports machines that could be anywhere.
func (e *evaluator) checkPlaced(of *block, r *Resources) {
	if r.Provider == ProviderGCP && r.TPU == "" && len(r.Zones)+len(r.Regions)+len(e.gcp.Zones) == 0 && of.child("resources").attr("tpu") == nil {
		e.errorAt(of.rng(), "Zone missing", "Nobody says where the machine is to be: write zones = [\"us-central1-a\"] in its resources, or in the provider block for all jobs.")
	}
}

func (e *evaluator) checkZones(b *block, r *Resources) {
	if r.TPU == "" {
		return
	}
	shape, err := ParseAccelerator(r.TPU)
	if err != nil {
		return // told where it was read
	}
	known := OfferedZones(shape.Generation, e.gcp.Offers)
	if len(known) == 0 {
		return
	}
	served := func(zone string) bool { return slices.Contains(known, zone) || !isKnownZone(zone) }
	if x := b.attr("zones"); x != nil {
		for _, zone := range r.Zones {
			if !served(zone) {
				e.errorAt(x.expr.Range(), "Zone without this TPU", fmt.Sprintf("%s has no %s. Zones that do: %s.", zone, shape.Generation, strings.Join(known, ", ")))
			}
		}
		return
	}
	zones := e.gcp.Zones
	if len(zones) > 0 && !slices.ContainsFunc(zones, served) {
		e.errorAt(b.attr("tpu").expr.Range(), "Zone without this TPU", fmt.Sprintf(
			"None of the provider's zones (%s) has %s. Zones that do: %s.", strings.Join(zones, ", "), shape.Generation, strings.Join(known, ", ")))
	}
}

// fromReservation gives resources the shape of the reservation they draw from, or a
// part of its machines.
func (e *evaluator) fromReservation(b *block, s scope, r *Resources, name string) {
	shape := []string{"provider", "tpu", "machine_type", "preemptible", "zones", "regions"}
	for _, stated := range append(shape, cloudNames()...) {
		if x := b.attr(stated); x != nil {
			e.errorAt(x.rng, "Shape stated twice", fmt.Sprintf("The slices are those of %s, so %s is given already: remove it here.", ScopedAddress(KindReservation, name), stated))
		}
	}
	pool := e.reservations[ScopedAddress(KindReservation, name)]
	if pool == nil {
		return // wrong, and told
	}
	r.Reservation, r.Provider, r.Preemptible = name, pool.Provider, pool.Preemptible
	r.TPU, r.CPU, r.Memory, r.Disk = pool.Max.TPU, pool.Max.CPU, pool.Max.Memory, pool.Max.Disk
	if e.packedShape(b, s, pool, r) {
		return
	}
	if r.Slices > pool.Max.Slices {
		rng := b.attr("reservation").rng
		if x := b.attr("slices"); x != nil {
			rng = x.rng
		}
		e.errorAt(rng, "Larger than its reservation", fmt.Sprintf(
			"One instance needs %d slices at once, but %s has %d at most. Lower slices here, or raise them in the reservation (%s).",
			r.Slices, pool.Addr, pool.Max.Slices, e.placeOf(pool.Addr)))
	}
}

// checkGroups reports groups that need more of a reservation at once than it
// can have: all their jobs are placed, or none.
func (s *session) checkGroups(jobs []Job) {
	type draw struct{ group, reservation Address }
	needed := map[draw]int{}
	for i := range jobs {
		if j := &jobs[i]; j.Addr.Group != "" && j.Resources.Reservation != "" && !j.Resources.Packed {
			needed[draw{j.Addr.GroupAddress(), ScopedAddress(KindReservation, j.Resources.Reservation)}] += j.Resources.Slices
		}
	}
	draws := slices.SortedFunc(maps.Keys(needed), func(a, b draw) int {
		return cmp.Or(a.group.Compare(b.group), a.reservation.Compare(b.reservation))
	})
	for _, d := range draws {
		n := needed[d]
		if pool := s.reservations[d.reservation]; pool != nil && n > pool.Max.Slices {
			_, decl := s.declared(d.group)
			s.errorAt(decl.block.rng(), "Larger than its reservation", fmt.Sprintf(
				"The jobs of this group are placed together and need %d slices of %s, which has %d at most. Raise its slices, or take jobs out of the group.",
				n, d.reservation, pool.Max.Slices))
		}
	}
}

// checkProject reports a project directory that is not there, or that uv cannot
// install from.
func (e *evaluator) checkProject(x *expression, dir string, uv bool) {
	key := dir
	if uv {
		key += "\x00uv"
	}
	problem, seen := e.projects[key]
	if !seen {
		problem = projectProblem(e.source.disk, dir, uv)
		e.projects[key] = problem
	}
	if problem != "" {
		e.errorAt(x.expr.Range(), "Project cannot be used", problem)
	}
}

func projectProblem(disk Files, dir string, uv bool) string {
	kind, err := disk.Kind(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("There is no directory %s. The path is relative to the configuration's directory.", dir)
	case err != nil:
		return fmt.Sprintf("%v.", err)
	case !kind.IsDir():
		return fmt.Sprintf("%s is no directory: name the one that it is in.", dir)
	case !uv:
		return ""
	}
	for _, name := range []string{"pyproject.toml", "uv.lock"} {
		if _, err := disk.Kind(filepath.Join(dir, name)); err == nil {
			continue
		}
		if name == "uv.lock" {
			return fmt.Sprintf("%s has no uv.lock, which says what to install: run `uv lock` there.", dir)
		}
		return fmt.Sprintf("%s has no pyproject.toml, so it is no project of uv: run `uv init` there, or name another directory.", dir)
	}
	return ""
}

// placeOf says where something is declared.
func (s *session) placeOf(addr Address) string {
	_, decl := s.declared(addr)
	return place(decl.block.rng())
}

func httpPath(v cty.Value) (string, error) {
	s, err := notEmpty(v)
	if err == nil && !strings.HasPrefix(s, "/") {
		return "", fmt.Errorf("want a path that starts with /, such as \"/healthz\"; this is %q", s)
	}
	return s, err
}

func checkCommand(v cty.Value) ([]string, error) {
	words, err := stringList(v)
	if err == nil && (len(words) == 0 || words[0] == "") {
		return nil, errors.New("the check has no program; write one, such as [\"test\", \"-e\", \"ready\"]")
	}
	return words, err
}

func asTrue(v cty.Value) (bool, error) {
	b, err := asBool(v)
	if err == nil && !b {
		return false, errors.New("false checks nothing; write tcp = true, or remove the block")
	}
	return b, err
}

// checkHealth reports a check that has not exactly one way to check, or a port
// that the job does not have, and fills in the only port.
func (e *evaluator) checkHealth(b *block, h *Health, ports []Port) {
	var ways []string
	for _, name := range []string{"http", "tcp", "exec"} {
		if b.attr(name) != nil {
			ways = append(ways, name)
		}
	}
	switch {
	case len(ways) == 0:
		e.errorAt(b.rng(), "Nothing to check", "A health_check needs one of http = \"/path\", tcp = true and exec = [\"command\"].")
		return
	case len(ways) > 1:
		e.errorAt(b.rng(), "More than one check", fmt.Sprintf("A health_check has exactly one of http, tcp and exec; this one has %s.", strings.Join(ways, " and ")))
		return
	case ways[0] == "exec":
		if x := b.attr("port"); x != nil {
			e.errorAt(x.rng, "Port without use", "An exec check uses no port: remove it.")
		}
		return
	}
	e.checkHealthPort(b, h, ports)
}

func (e *evaluator) checkHealthPort(b *block, h *Health, ports []Port) {
	x := b.attr("port")
	_, notNumber := strconv.Atoi(h.Port)
	switch {
	case x == nil && len(ports) == 1:
		h.Port = ports[0].Name
	case x == nil && len(ports) == 0:
		e.errorAt(b.rng(), "Port missing", "An http or tcp check needs a port: add ports = [\"http\"] to resources, and port = \"http\" here.")
	case x == nil:
		e.errorAt(b.rng(), "Port missing", fmt.Sprintf("The job has several ports: choose one with port = \"%s\".", ports[0].Name))
	case h.Port != "" && notNumber != nil && !slices.Contains(portNames(ports), h.Port):
		e.errorAt(x.expr.Range(), "Unknown port", fmt.Sprintf("resources has no port %q. %s", h.Port, didYouMean(h.Port, portNames(ports))))
	}
}

// warnOfImage says that containers are not used on this machine.
func (e *evaluator) warnOfImage(x *expression) {
	rng := x.rng
	e.add(&hcl.Diagnostic{
		Severity: hcl.DiagWarning,
		Summary:  "Image is not used here",
		Detail:   "The provider local runs tasks as processes, not in containers. The command must work on this machine as it is.",
		Subject:  &rng,
	})
}
