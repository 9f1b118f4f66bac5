package admission

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// stackOf is what requests are checked against: what is declared and launched,
// without the jobs and without reservations whose time is over.
func stackOf(doc *state.Document, now time.Time) *schema.Desired {
	declared, without := doc.Desired, *doc
	declared.Jobs, without.Jobs = nil, nil
	stack := *launch.Wanted(&declared, &without, now)
	stack.Reservations = slices.DeleteFunc(slices.Clone(stack.Reservations), func(r schema.Reservation) bool {
		since := doc.Resources[r.Addr].Since
		return r.TTL > 0 && !since.IsZero() && !now.Before(since.Add(time.Duration(r.TTL)))
	})
	return &stack
}

// decode makes specs of all requests, or refuses them with every mistake.
func (o *Order) decode(doc *state.Document, from *inherited, now time.Time) ([]*schema.Job, error) {
	check := &langrequest.Context{Stack: stackOf(doc, now), Provider: from.provider, Region: from.region}
	var specs []*schema.Job
	var wrong []langrequest.Mistake
	for i := range o.Requests {
		wrong = append(wrong, statedMistakes(o.Paths[i], o.Requests[i])...)
		request := o.request(i, from, check.Stack)
		spec, mistakes := check.Job(request)
		wrong = append(wrong, mistakes...)
		o.finish(spec, i, from)
		if err := hideInherited(spec, from.parent, o.Sealer); err != nil {
			return nil, status.Errorf(codes.FailedPrecondition, "%s: %v", o.Paths[i], err)
		}
		specs = append(specs, spec)
	}
	if len(wrong) > 0 {
		return nil, badrequest.Of(wrong...)
	}
	if err := o.mayUse(specs); err != nil {
		return nil, err
	}
	if why := check.NeverFits(specs, o.groupSpec(from.namespace)); why != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "it can never run: %s", why)
	}
	return specs, nil
}

// request is one of the order's in the words of the language.
func (o *Order) request(i int, from *inherited, stack *schema.Desired) *langrequest.Job {
	r := o.Requests[i]
	out := &langrequest.Job{
		Path:        o.Paths[i],
		Addr:        schema.LaunchedAddress(schema.KindJob, from.namespace, o.Group.GetName(), r.GetName()),
		Namespace:   from.namespace,
		Environment: o.environment(i, from),
		Tasks:       int(r.GetNumTasks()),
		Fields:      jobFields(r),
	}
	switch asked := r.GetResources().GetReservationId(); {
	case asked != "":
		out.Reservation = o.reservation(asked, from.namespace, stack)
	case o.Pool != "":
		out.Reservation = o.groupReservation(r.GetResources(), from.namespace, stack)
		out.ReservationPath = "reservation_id"
	default:
		out.Reservation = drawnFrom(r, from.namespace, stack)
	}
	return out
}

// environment is what a job starts from: its parent's, as far as it asks for that.
func (o *Order) environment(i int, from *inherited) schema.Environment {
	r := o.Requests[i]
	var env schema.Environment
	if from.parent != nil {
		env = from.parent.Spec.Environment
		if asked := r.GetEnvironment(); asked != nil && !asked.GetInherit() {
			env = schema.Environment{Bundle: env.Bundle, Project: env.Project}
		}
		env.Env = withoutActor(env.Env)
	}
	if bundle := r.GetEnvironment().GetBundle(); bundle != "" {
		env.Bundle, env.Project = bundle, ""
	}
	env.Callable = r.GetEntrypoint().GetCallable().GetSha256()
	return env
}

// withoutActor leaves out what makes a job the host of an actor: its children are not.
func withoutActor(env map[string]schema.Text) map[string]schema.Text {
	kept := maps.Clone(env)
	maps.DeleteFunc(kept, func(name string, _ schema.Text) bool { return strings.HasPrefix(name, actors.Variables) })
	return kept
}

// finish gives a job what it has of its parent or of who asks.
func (o *Order) finish(spec *schema.Job, i int, from *inherited) {
	r := o.Requests[i]
	spec.User, spec.Band = r.GetUser(), bandNames()[r.GetBand()]
	if parent := from.parent; parent != nil {
		if spec.User == "" {
			spec.User = parent.Spec.User
		}
		if r.GetBand() == clusterapi.Band_BAND_UNSPECIFIED {
			spec.Band = parent.Spec.Band
		}
	} else if spec.User == "" {
		spec.User = o.Caller.User
	}
}

// mayUse refuses jobs that would use the share of another user than theirs.
func (o *Order) mayUse(specs []*schema.Job) error {
	if o.Caller.Kind != caller.Job || o.Caller.User == "" {
		return nil
	}
	for i, spec := range specs {
		if spec.User != o.Caller.User {
			return status.Errorf(codes.PermissionDenied, "%s.user: job %s uses the share of %s and may not use that of %s", o.Paths[i], o.Caller.JobID, o.Caller.User, spec.User)
		}
	}
	return nil
}

// reservation is the scoped name of a reservation that a caller names by its
// id, its name in the namespace, or its address. One that it may not use is as
// if it were not there.
func (o *Order) reservation(asked, namespace string, stack *schema.Desired) string {
	for i := range stack.Reservations {
		r := &stack.Reservations[i]
		if IsCalled(r.Addr, asked, namespace) && MayDraw(o.Caller, r) {
			return r.Addr.Scoped()
		}
	}
	return asked
}

// IsCalled reports whether a caller in a namespace means that reservation.
func IsCalled(addr schema.Address, asked, namespace string) bool {
	return asked == addr.Scoped() || asked == addr.String() ||
		addr == schema.LaunchedAddress(schema.KindReservation, namespace, "", asked)
}

// MayDraw reports whether jobs of a caller may use a reservation: a declared
// one is everybody's unless it has a namespace.
func MayDraw(who caller.Caller, r *schema.Reservation) bool {
	return who.Kind != caller.Job || r.Namespace == "" || r.Namespace == who.Namespace
}

// groupReservation is the group's reservation for those of its jobs that it
// suits, "" for others: machines without accelerators are not made of such ones.
func (o *Order) groupReservation(r *clusterapi.Resources, namespace string, stack *schema.Desired) string {
	name := o.reservation(o.Pool, namespace, stack)
	at := slices.IndexFunc(stack.Reservations, func(p schema.Reservation) bool { return p.Addr.Scoped() == name })
	if at < 0 {
		return name // told by who decodes it
	}
	pool := &stack.Reservations[at]
	shape, err := accelerators.Parse(r.GetTpu())
	gpu := gpuOf(r)
	isMachine := r.GetTpu() == "" && gpu.Count == 0 && (r.GetCpu() != 0 || r.GetMemory() != 0 || r.GetDisk() != 0 || r.GetMachineType() != "")
	switch {
	case (pool.Max.TPU != "" || pool.Max.GPU.Count > 0) && isMachine,
		gpu.Count > 0 && (gpu.Count != pool.Max.GPU.Count || !pool.Max.GPU.Suits(gpu)), r.GetTpu() != "" && err == nil && shape.Type != pool.Max.TPU:
		return ""
	}
	return name
}

// gpuOf are the GPUs that resources ask for, their type in its canonical form.
func gpuOf(r *clusterapi.Resources) schema.GPU {
	asked := r.GetGpu()
	if asked == nil {
		return schema.GPU{}
	}
	gpu := schema.GPU{Type: asked.GetType(), Count: int(cmp.Or(asked.GetCount(), 1))}
	if known, err := accelerators.ParseGPU(gpu.Type); err == nil {
		gpu.Type = known.Name
	}
	return gpu
}

// drawnFrom is the reservation of the namespace that has exactly the TPU slices or GPUs
// that a job asks for, without naming it; "" if there is none.
func drawnFrom(r *clusterapi.JobRequest, namespace string, stack *schema.Desired) string {
	res := r.GetResources()
	shape, err := accelerators.Parse(res.GetTpu())
	gpu := gpuOf(res)
	if gpu.Count > 0 && res.GetCpu() == 0 && res.GetMemory() == 0 && res.GetDisk() == 0 { // reserved machines are given whole
		shape, err = accelerators.Shape{Hosts: 1}, nil
	}
	placed := len(res.GetZones())+len(res.GetRegions()) > 0 || res.GetProvider() != ""
	if err != nil || placed && !stack.Local {
		return ""
	}
	needed := max(int(res.GetSlices()), int(r.GetNumTasks())/shape.Hosts, 1)
	for i := range stack.Reservations {
		pool := &stack.Reservations[i]
		suits := res.Preemptible == nil || res.GetPreemptible() == pool.Preemptible
		if pool.Namespace == namespace && namespace != "" && pool.Max.TPU == shape.Type && pool.Max.GPU.Count == gpu.Count && pool.Max.GPU.Suits(gpu) && suits && needed <= pool.Max.Slices {
			return pool.Addr.Scoped()
		}
	}
	return ""
}
