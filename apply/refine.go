package apply

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Refiner makes [Config.Refine]: it evaluates what reads values as they become
// known. It is for one apply.
type Refiner struct {
	Source  *lang.Source
	Options eval.Options                                 // but for Computed
	Prepare func(*schema.Config) (schema.Desired, error) // makes what is planned against, sealed
	Sealer  schema.Sealer
	Target  func(schema.Desired) schema.Desired // what is taken over of it; nil: all

	values  *lang.Evaluation
	desired schema.Desired // all, as of the values that were known last
	read    readings
	rest    []schema.Address // of jobs whose texts were not taken over yet: they rest
}

// readings are the jobs and reservations whose values a configuration reads.
type readings []readJob

// readJob is a job or reservation whose values others read.
type readJob struct {
	addr schema.Address
	last *state.Job // as it was when they were last read
	pool []string   // the slices of a reservation, as they were then
}

// Refine returns what is desired with the values that doc knows, nil if that is
// what doc has. The first call evaluates everything.
func (r *Refiner) Refine(doc *state.Document) (*schema.Desired, error) {
	if r.values == nil {
		return r.begin(doc)
	}
	known := r.read.news(doc)
	if len(known) == 0 {
		return r.risen(doc)
	}
	found, diags := r.values.Refine(known)
	if diags.HasErrors() {
		return nil, again(diags)
	}
	if found.Whole != nil {
		return r.whole(doc, found.Whole)
	}
	if len(found.Jobs) == 0 {
		return r.risen(doc)
	}
	desired, err := r.desired.Refined(found.Jobs, r.Sealer)
	if err != nil {
		return nil, err
	}
	r.desired = desired
	if r.Target != nil {
		return r.different(doc)
	}
	desired = r.rested(doc, desired)
	return &desired, nil
}

// risen is what is desired once a job rests no more.
func (r *Refiner) risen(doc *state.Document) (*schema.Desired, error) {
	if slices.ContainsFunc(r.rest, func(a schema.Address) bool { return !rests(doc.Jobs[a]) }) {
		return r.different(doc)
	}
	return nil, nil
}

// rested is a configuration in which jobs that rest read as they did.
func (r *Refiner) rested(doc *state.Document, desired schema.Desired) schema.Desired {
	r.rest = nil
	for i := range desired.Jobs {
		now := &desired.Jobs[i]
		addr := now.Addr
		at, declared := i, i < len(doc.Desired.Jobs) && doc.Desired.Jobs[i].Addr == addr
		if !declared {
			at, declared = slices.BinarySearchFunc(doc.Desired.Jobs, addr, func(j schema.Job, a schema.Address) int { return j.Addr.Compare(a) })
		}
		if !declared {
			continue
		}
		was := &doc.Desired.Jobs[at]
		if schema.SameTexts(was.Environment.Env, now.Environment.Env) && slices.Equal(was.Command, now.Command) || !rests(doc.Jobs[addr]) {
			continue
		}
		if len(r.rest) == 0 {
			desired.Jobs = slices.Clone(desired.Jobs)
		}
		r.rest = append(r.rest, addr)
		desired.Jobs[i].Command, desired.Jobs[i].Environment.Env = was.Command, was.Environment.Env
		desired.Jobs[i].Sensitive = was.Sensitive
	}
	return desired
}

// rests reports whether a job's work is done, or the job was stopped: values
// that change are no reason to run it again.
func rests(j *state.Job) bool {
	if j == nil || j.Replace {
		return false
	}
	return j.Stop || j.Attempt > 0 && (j.Status == schema.JobSucceeded || j.Status == schema.JobStopped)
}

func (r *Refiner) begin(doc *state.Document) (*schema.Desired, error) {
	opts := r.Options
	opts.Computed = doc.Computed()
	values, diags := r.Source.Begin(opts)
	if diags.HasErrors() {
		return nil, again(diags)
	}
	r.values = values
	return r.whole(doc, values.Config())
}

// again wraps what is wrong with the values that are known now.
func again(diags error) error {
	return fmt.Errorf("evaluate the configuration again with the values now known: %w", diags)
}

// whole takes in a configuration.
func (r *Refiner) whole(doc *state.Document, cfg *schema.Config) (*schema.Desired, error) {
	var err error
	if r.desired, err = r.Prepare(cfg); err != nil {
		return nil, err
	}
	r.read = r.read.anew(doc, cfg, r.values)
	return r.different(doc)
}

// different is what is desired, nil if doc has the same.
func (r *Refiner) different(doc *state.Document) (*schema.Desired, error) {
	desired := r.desired
	if r.Target != nil {
		desired = r.Target(desired)
	}
	desired = change.Settled(r.rested(doc, desired), doc)
	before, err := schema.DigestOf(doc.Desired)
	if err != nil {
		return nil, err
	}
	after, err := schema.DigestOf(desired)
	if err != nil || before == after {
		return nil, err
	}
	return &desired, nil
}

// anew are those of a configuration, with the values that doc knows as read. What
// there was is written over.
func (r readings) anew(doc *state.Document, cfg *schema.Config, values *lang.Evaluation) readings {
	r = r[:0]
	for i := range cfg.Desired.Jobs {
		if addr := cfg.Desired.Jobs[i].Addr; values.Reads(addr) {
			r = append(r, readJob{addr: addr, last: doc.Jobs[addr]})
		}
	}
	for i := range cfg.Desired.Reservations {
		if addr := cfg.Desired.Reservations[i].Addr; values.Reads(addr) {
			c, _ := doc.ComputedOfReservation(addr)
			r = append(r, readJob{addr: addr, pool: c.Slices})
		}
	}
	return r
}

// news are the values of the jobs whose records changed. Records are not
// changed in place, so those that are the same say the same.
func (r readings) news(doc *state.Document) map[schema.Address]schema.Computed {
	var known map[schema.Address]schema.Computed
	for i := range r {
		c, changed := r[i].news(doc)
		if !changed {
			continue
		}
		if known == nil {
			known = map[schema.Address]schema.Computed{}
		}
		known[r[i].addr] = c
	}
	return known
}

func (j *readJob) news(doc *state.Document) (c schema.Computed, changed bool) {
	if j.addr.Kind == schema.KindReservation {
		c, known := doc.ComputedOfReservation(j.addr)
		if !known || slices.Equal(c.Slices, j.pool) {
			return c, false
		}
		j.pool = c.Slices
		return c, true
	}
	now := doc.Jobs[j.addr]
	if now == j.last {
		return c, false
	}
	if j.last = now; now != nil {
		c, _ = now.Computed()
	}
	return c, true
}
