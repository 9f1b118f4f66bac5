package decode

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

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/schema"
)

// TPU decodes a TPU type to its canonical form.
func (e *Decoder) TPU(s eval.RepetitionData, x *configs.Expression) string {
	return eval.Get(e, s, x, func(v cty.Value) (string, error) {
		name, err := as.String(v)
		if err != nil {
			return "", err
		}
		shape, err := accelerators.Parse(name)
		return shape.Type, err
	}, "")
}

// checkShape reports attributes of resources that exclude each other, and zones
// that cannot be had.
func (e *Decoder) checkShape(b *configs.Block, r *schema.Resources) {
	if x := b.Attr("tpu"); x != nil && r.TPU != "" && len(r.Accelerators) == 0 {
		checkOneAccelerator(e.Reporter, b)
		for _, name := range []string{"cpu", "memory", "disk", "machine_type"} {
			if other := b.Attr(name); other != nil {
				e.ErrorAt(other.Range, "TPU and "+name, fmt.Sprintf("A TPU slice brings its own machines: remove %s, or remove tpu for a machine without TPU.", name))
			}
		}
	}
	switch r.Provider {
	case schema.ProviderLocal:
		for _, name := range append([]string{"zones", "regions", "machine_type"}, cloudNames()...) {
			if x := b.Attr(name); x != nil && !e.Options.Local {
				e.ErrorAt(x.Range, "Not on this machine", fmt.Sprintf("The provider local has no %s: remove it, or choose provider = \"gcp\".", name))
			}
		}
	case schema.ProviderGCP:
		if gpu := b.Child("gpu"); gpu != nil {
			checkGPUs(e.Reporter, gpu, r.GPU)
		}
		e.checkZones(b, r)
	case schema.ProviderRay:
		checkRay(e, b)
	}
}

// checkPlaced reports machines that could be anywhere. b has what is stated of them.
func (e *Decoder) checkPlaced(of hcl.Range, b *configs.Block, r *schema.Resources) {
	if r.GPU.Count > 0 && len(accelerators.OfferedZones(r.Kind(), e.Whole.GCP.Offers)) > 0 {
		return
	}
	if r.Provider == schema.ProviderGCP && r.TPU == "" && len(r.Accelerators)+len(r.Zones)+len(r.Regions)+len(e.Whole.GCP.Zones) == 0 && b.Attr("tpu") == nil && b.Attr("accelerators") == nil {
		e.ErrorAt(of, "Zone missing", "The machine has no zone: write zones = [\"us-central1-a\"] in its resources, or in the provider block for all jobs.")
	}
}

func (e *Decoder) checkZones(b *configs.Block, r *schema.Resources) {
	if len(r.Accelerators) > 0 {
		e.checkAlternatives(b, r)
		return
	}
	if r.TPU == "" {
		return
	}
	shape, err := accelerators.Parse(r.TPU)
	if err != nil {
		return // reported where it was read
	}
	known := accelerators.OfferedZones(shape.Type, e.Whole.GCP.Offers)
	if len(known) == 0 {
		return
	}
	served := func(zone string) bool { return slices.Contains(known, zone) || !accelerators.IsKnownZone(zone) }
	if x := b.Attr("zones"); x != nil {
		for _, zone := range r.Zones {
			if !served(zone) {
				e.ErrorAt(x.Expr.Range(), "Zone without this TPU", fmt.Sprintf("%s has no %s. Zones that do: %s.", zone, shape.Type, strings.Join(known, ", ")))
			}
		}
		return
	}
	zones := e.Whole.GCP.Zones
	if len(zones) > 0 && !slices.ContainsFunc(zones, served) {
		e.ErrorAt(tpuRange(b), "Zone without this TPU", fmt.Sprintf(
			"None of the provider's zones (%s) has %s. Zones that do: %s.", strings.Join(zones, ", "), shape.Type, strings.Join(known, ", ")))
	}
}

// tpuRange is where a block states its TPU: a reservation does in its min and max.
func tpuRange(b *configs.Block) hcl.Range {
	for _, of := range []*configs.Block{b, b.Child("min"), b.Child("max")} {
		if x := of.Attr("tpu"); x != nil {
			return x.Expr.Range()
		}
	}
	return b.Range()
}

// fromReservation gives resources the shape of the reservation they draw from, or a
// part of its machines.
func (e *JobDecoder) fromReservation(b *configs.Block, r *schema.Resources, name string) {
	if gpu := b.Child("gpu"); gpu != nil {
		e.ErrorAt(gpu.Range(), "Shape stated twice", fmt.Sprintf("The slices are those of %s and whole machines, so their GPUs are given already: remove the gpu block here. A part of a machine has no GPUs.", schema.ScopedAddress(schema.KindReservation, name)))
	}
	shape := []string{"provider", "tpu", "accelerators", "machine_type", "preemptible", "zones", "regions"}
	for _, stated := range append(shape, cloudNames()...) {
		if x := b.Attr(stated); x != nil {
			e.ErrorAt(x.Range, "Shape stated twice", fmt.Sprintf("The slices are those of %s, so %s is given already: remove it here.", schema.ScopedAddress(schema.KindReservation, name), stated))
		}
	}
	pool := e.Whole.Reservations[schema.ScopedAddress(schema.KindReservation, name)]
	if pool == nil {
		return // wrong, and reported
	}
	r.Reservation, r.Provider, r.Preemptible = name, pool.Provider, pool.Preemptible
	r.TPU, r.GPU, r.CPU, r.Memory, r.Disk = pool.Max.TPU, pool.Max.GPU, pool.Max.CPU, pool.Max.Memory, pool.Max.Disk
	if e.PackedShape(b, e.instance, pool, r) {
		return
	}
	if r.Slices > pool.Max.Slices {
		rng := b.Attr("reservation").Range
		if x := b.Attr("slices"); x != nil {
			rng = x.Range
		}
		e.ErrorAt(rng, "Larger than its reservation", fmt.Sprintf(
			"One instance needs %d slices at once, but %s has %d at most. Lower slices here, or raise them in the reservation (%s).",
			r.Slices, pool.Addr, pool.Max.Slices, e.placeOf(pool.Addr)))
	}
}

// checkGroups reports groups that need more of a reservation at once than it
// can have: all their jobs are placed, or none.
func (w *Decoding) checkGroups(jobs []schema.Job) {
	type draw struct{ group, reservation schema.Address }
	needed := map[draw]int{}
	for i := range jobs {
		if j := &jobs[i]; j.Addr.Group != "" && j.Resources.Reservation != "" && !j.Resources.Packed {
			needed[draw{j.Addr.GroupAddress(), schema.ScopedAddress(schema.KindReservation, j.Resources.Reservation)}] += j.Resources.Slices
		}
	}
	draws := slices.SortedFunc(maps.Keys(needed), func(a, b draw) int {
		return cmp.Or(a.group.Compare(b.group), a.reservation.Compare(b.reservation))
	})
	for _, d := range draws {
		n := needed[d]
		if pool := w.Reservations[d.reservation]; pool != nil && n > pool.Max.Slices {
			_, decl := w.session.Declared(d.group)
			w.session.ErrorAt(decl.Block.Range(), "Larger than its reservation", fmt.Sprintf(
				"The jobs of this group are placed together and need %d slices of %s, which has %d at most. Raise its slices, or take jobs out of the group.",
				n, d.reservation, pool.Max.Slices))
		}
	}
}

// checkProject reports a project directory that is not there, or that uv cannot
// install from.
func (e *JobDecoder) checkProject(x *configs.Expression, dir string, uv bool) {
	key := dir
	if uv {
		key += "\x00uv"
	}
	problem, seen := e.Whole.projects[key]
	if !seen {
		problem = projectProblem(e.Source.Disk, dir, uv)
		e.Whole.projects[key] = problem
	}
	if problem != "" {
		e.ErrorAt(x.Expr.Range(), "Project cannot be used", problem)
	}
}

func projectProblem(disk files.System, dir string, uv bool) string {
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
			return fmt.Sprintf("%s has no uv.lock, which lists the packages to install: run `uv lock` there.", dir)
		}
		return fmt.Sprintf("%s has no pyproject.toml, so it is no project of uv: run `uv init` there, or name another directory.", dir)
	}
	return ""
}

// placeOf is where something is declared.
func (e *Decoder) placeOf(addr schema.Address) string {
	_, decl := e.Declared(addr)
	return diagnose.Place(decl.Block.Range())
}

func httpPath(v cty.Value) (string, error) {
	s, err := as.NotEmpty(v)
	if err == nil && !strings.HasPrefix(s, "/") {
		return "", fmt.Errorf("want a path that starts with /, such as \"/healthz\"; this is %q", s)
	}
	return s, err
}

func checkCommand(v cty.Value) ([]string, error) {
	words, err := as.StringList(v)
	if err == nil && (len(words) == 0 || words[0] == "") {
		return nil, errors.New("the check has no program; write one, such as [\"test\", \"-e\", \"ready\"]")
	}
	return words, err
}

func asTrue(v cty.Value) (bool, error) {
	b, err := as.Bool(v)
	if err == nil && !b {
		return false, errors.New("false checks nothing; write tcp = true, or remove the block")
	}
	return b, err
}

// checkHealth reports a check that has not exactly one way to check, or a port
// that the job does not have, and fills in the only port.
func (e *JobDecoder) checkHealth(b *configs.Block, h *schema.Health, ports []schema.Port) {
	var ways []string
	for _, name := range []string{"http", "tcp", "exec"} {
		if b.Attr(name) != nil {
			ways = append(ways, name)
		}
	}
	switch {
	case len(ways) == 0:
		e.ErrorAt(b.Range(), "Nothing to check", "A health_check needs one of http = \"/path\", tcp = true and exec = [\"command\"].")
		return
	case len(ways) > 1:
		e.ErrorAt(b.Range(), "More than one check", fmt.Sprintf("A health_check has exactly one of http, tcp and exec; this one has %s.", strings.Join(ways, " and ")))
		return
	case ways[0] == "exec":
		if x := b.Attr("port"); x != nil {
			e.ErrorAt(x.Range, "Port without use", "An exec check uses no port: remove it.")
		}
		return
	}
	e.checkHealthPort(b, h, ports)
}

func (e *JobDecoder) checkHealthPort(b *configs.Block, h *schema.Health, ports []schema.Port) {
	x := b.Attr("port")
	_, notNumber := strconv.Atoi(h.Port)
	switch {
	case x == nil && len(ports) == 1:
		h.Port = ports[0].Name
	case x == nil && len(ports) == 0:
		e.ErrorAt(b.Range(), "Port missing", "An http or tcp check needs a port: add ports = [\"http\"] to resources, and port = \"http\" here.")
	case x == nil:
		e.ErrorAt(b.Range(), "Port missing", fmt.Sprintf("The job has several ports: choose one with port = \"%s\".", ports[0].Name))
	case h.Port != "" && notNumber != nil && !slices.Contains(portNames(ports), h.Port):
		e.ErrorAt(x.Expr.Range(), "Unknown port", fmt.Sprintf("resources has no port %q. %s", h.Port, diagnose.DidYouMean(h.Port, portNames(ports))))
	}
}

// checkImage warns of an image where tasks are processes of this machine.
func (e *JobDecoder) checkImage(x *configs.Expression, provider schema.ProviderName) {
	var runner string
	switch {
	case e.Options.Local || provider == schema.ProviderLocal:
		runner = "The provider local runs"
	case e.Options.Emulated && provider == schema.ProviderGCP:
		runner = "The hosts of an emulated cloud run"
	default:
		return
	}
	rng := x.Range
	e.Add(&hcl.Diagnostic{
		Severity: hcl.DiagWarning,
		Summary:  "Image is not used here",
		Detail:   runner + " tasks as processes, not in containers. The command must work on this machine as it is.",
		Subject:  &rng,
	})
}
