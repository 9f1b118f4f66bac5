package request

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// placed adds to the fields where the asker runs, if they name no place. The
// regions of a job, or of a reservation, are at attr, and at path in its request.
func (e *requested) placed(c *Context, fields []Field, attr, path string) []Field {
	provider := e.Whole.Implied
	for _, f := range fields {
		switch block := strings.TrimSuffix(attr, "regions"); f.Attr {
		case block + "provider":
			provider = schema.ProviderName(f.Value.AsString())
		case block + "zones", block + "regions":
			return fields
		}
	}
	if provider != schema.ProviderGCP || c.Region == "" {
		return fields
	}
	region := Field{Attr: attr, Path: path, Value: cty.TupleVal([]cty.Value{cty.StringVal(c.Region)})}
	return append(slices.Clip(fields), region)
}

// drawn decodes what a job has of a reservation. Its shape may be stated, as
// long as it is that one; of machines without TPU a part may be asked for.
func (e *requested) drawn(b *configs.Block, r *Job, out *schema.Resources) {
	out.Slices = eval.Get(e, nil, b.Attr("slices"), as.WholeNumber(1, 100_000), 1)
	out.Ports = eval.Get(e, nil, b.Attr("ports"), as.PortList, nil)
	slices.SortFunc(out.Ports, func(a, c schema.Port) int { return cmp.Compare(a.Name, c.Name) })
	at := cmp.Or(r.ReservationPath, joinPath(r.Path, "resources.reservation_id"))
	pool := e.Whole.Reservations[schema.ScopedAddress(schema.KindReservation, r.Reservation)]
	if pool == nil {
		d := diagnose.ErrorAt(fieldRange(at), "No such reservation", strings.TrimSpace(fmt.Sprintf("There is no reservation %q. %s", r.Reservation, diagnose.DidYouMean(r.Reservation, e.reservationNames()))))
		d.Extra = diagnose.NoReservation
		e.Add(d)
		return
	}
	for _, stated := range []string{"provider", "accelerators", "machine_type", "zones", "regions"} {
		if x := b.Attr(stated); x != nil {
			e.ErrorAt(x.Range, "Shape stated twice", fmt.Sprintf("The slices are those of %s, so %s is given already: remove it here.", pool.Addr, stated))
		}
	}
	out.Reservation, out.Provider, out.Preemptible, out.TPU = r.Reservation, pool.Provider, pool.Preemptible, pool.Max.TPU
	out.GPU = pool.Max.GPU
	out.CPU, out.Memory, out.Disk = pool.Max.CPU, pool.Max.Memory, pool.Max.Disk
	e.drawnShape(b, pool, out)
	if !out.Packed && out.Slices > pool.Max.Slices {
		rng := fieldRange(at)
		if x := b.Attr("slices"); x != nil {
			rng = x.Range
		}
		e.ErrorAt(rng, "Larger than its reservation", fmt.Sprintf(
			"One instance needs %d slices at once, but %s has %d at most. Lower slices here, or raise them in the reservation.",
			out.Slices, pool.Addr, pool.Max.Slices))
	}
}

// drawnShape compares the shape that is stated with that of the reservation.
func (e *requested) drawnShape(b *configs.Block, pool *schema.Reservation, out *schema.Resources) {
	tpu := e.TPU(nil, b.Attr("tpu"))
	if tpu != "" && tpu != pool.Max.TPU {
		has := cmp.Or(pool.Max.TPU, "machines without TPU")
		e.ErrorAt(b.Attr("tpu").Range, "Other shape than its reservation", fmt.Sprintf("The slices of %s are %s, not %s: ask for those, or name another reservation.", pool.Addr, has, tpu))
	}
	if block := b.Child("gpu"); block != nil {
		gpu := e.GPU(nil, block)
		if gpu.Count != pool.Max.GPU.Count || !pool.Max.GPU.Suits(gpu) {
			has := cmp.Or(pool.Max.GPU.String(), pool.Max.TPU, "no GPUs")
			e.ErrorAt(block.Range(), "Other shape than its reservation", fmt.Sprintf("The slices of %s have %s each, not %s: ask for those, or name another reservation.", pool.Addr, has, gpu))
		}
	}
	e.PackedShape(b, nil, pool, out)
}

func (e *requested) reservationNames() []string {
	names := make([]string, 0, len(e.Whole.Reservations))
	for _, addr := range slices.SortedFunc(maps.Keys(e.Whole.Reservations), schema.Address.Compare) {
		names = append(names, addr.Scoped())
	}
	return names
}

// tasks settles how many slices there are by how many tasks are asked for.
func (e *requested) tasks(b *configs.Block, r *Job, j *schema.Job) {
	hosts := 1
	if shape, err := accelerators.Parse(j.Resources.TPU); err == nil {
		hosts = shape.Hosts
	}
	path := fieldRange(joinPath(r.Path, "num_tasks"))
	for _, a := range j.Resources.Accelerators {
		shape, err := accelerators.Parse(a.TPU())
		if other := max(1, shape.Hosts); r.Tasks > 1 && (err == nil || hosts != 1) && other != hosts {
			e.ErrorAt(path, "Invalid value for num_tasks", fmt.Sprintf("The alternatives have different numbers of hosts (%s %d, %s %d), so a number of tasks suits only some of them: leave it out, and state slices.", j.Resources.Accelerator(), hosts, a, other))
			return
		}
	}
	stated := b.Child("resources").Attr("slices") != nil
	switch needed := r.Tasks / hosts; {
	case r.Tasks < 0 || r.Tasks > 100_000:
		e.ErrorAt(path, "Invalid value for num_tasks", fmt.Sprintf("Want a number from 0 to 100000, this is %d.", r.Tasks))
	case r.Tasks <= 1:
	case r.Tasks%hosts != 0:
		e.ErrorAt(path, "Invalid value for num_tasks", fmt.Sprintf("Each host of a slice runs one task, and %s has %d hosts: want a multiple of %d, this is %d.", j.Resources.TPU, hosts, hosts, r.Tasks))
	case stated && needed != j.Resources.Slices:
		e.ErrorAt(path, "Invalid value for num_tasks", fmt.Sprintf("%d slices have %d hosts, this is %d: leave one of the two out.", j.Resources.Slices, j.Resources.Slices*hosts, r.Tasks))
	default:
		j.Resources.Slices = needed
		e.tasksFit(path.Filename, r, j)
	}
}

func (e *requested) tasksFit(path string, r *Job, j *schema.Job) {
	pool := e.Whole.Reservations[schema.ScopedAddress(schema.KindReservation, r.Reservation)]
	if r.Reservation == "" || pool == nil || j.Resources.Packed || j.Resources.Slices <= pool.Max.Slices {
		return
	}
	e.ErrorAt(fieldRange(path), "Larger than its reservation", fmt.Sprintf(
		"%d tasks need %d slices at once, but %s has %d at most.", r.Tasks, j.Resources.Slices, pool.Addr, pool.Max.Slices))
}

// requestedEnvironment lays a request's fields over the environment that it
// starts from.
func (e *requested) requestedEnvironment(b *configs.Block, r *Job, j *schema.Job) {
	env := r.Environment
	asked := b.Child("environment")
	env.Image = eval.Get(e, nil, asked.Attr("image"), as.NotEmpty, env.Image)
	if own := e.TextMap(nil, asked.Attr("env")); own != nil {
		all := maps.Clone(env.Env)
		if all == nil {
			all = map[string]schema.Text{}
		}
		maps.Copy(all, own)
		env.Env = all
	}
	uv := asked.Child("uv")
	if uv != nil {
		env.UV = &schema.UV{
			Extras: eval.Get(e, nil, uv.Attr("extras"), as.StringList, nil),
			Groups: eval.Get(e, nil, uv.Attr("groups"), as.StringList, nil),
			Python: eval.Get(e, nil, uv.Attr("python"), as.NotEmpty, ""),
		}
	}
	at := func(field string) string { return joinPath(r.Path, field) }
	if uv != nil && env.Bundle == "" {
		e.ErrorAt(uv.Range(), "uv without a project", "uv installs the packages of a project's uv.lock: upload a project that has one and give its hash as the environment's bundle.")
	}
	if env.Image != "" && env.UV != nil && j.Resources.Provider == schema.ProviderGCP {
		e.ErrorAt(fieldRange(at("environment.uv")), "Image and uv", "A container brings its own Python: install what the job needs into the image, or remove image to have uv install it on the host.")
	}
	e.checkHash(at("environment.bundle"), env.Bundle)
	e.checkHash(at("entrypoint.callable.sha256"), env.Callable)
	j.Environment = env
}

// checkHash reports what is no SHA-256 in hex; "" is none.
func (e *requested) checkHash(path, hash string) {
	if raw, err := hex.DecodeString(hash); hash != "" && (err != nil || len(raw) != 32 || hash != strings.ToLower(hash)) {
		e.ErrorAt(fieldRange(path), "Invalid value for sha256", "Want the SHA-256 of what was uploaded: 64 lower-case hexadecimal digits.")
	}
}
