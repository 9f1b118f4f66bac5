package policy

import (
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// FormatVersion is the version of what rules see. The minor number rises with new parts,
// the major one with changed or removed parts.
const FormatVersion = "1.0"

// Who makes a plan.
type Who struct {
	User string // "ada", or the actor of a CI job
	Host string // "ws1", or the name of the CI
	CI   string // "github-actions" or "gitlab-ci"; "": none
}

// Name is "USER@HOST".
func (w Who) Name() string {
	if w.Host == "" {
		return w.User
	}
	return w.User + "@" + w.Host
}

// Request is what was asked for, besides the files.
type Request struct {
	Mode      plan.Mode
	Targets   []schema.Address
	Replace   []schema.Address
	Workspace string
	Who       Who
	Time      time.Time
}

// Input is what policies see of a plan.
type Input struct {
	Request
	Revision uint64         // of the state that it is compared with
	Before   schema.Desired // as it was accepted last
	After    schema.Desired
	Changes  []Change
	Usage    Usage
}

// Change is a change of a plan, with the specs that it is between.
type Change struct {
	plan.Change
	// Before and After are a *schema.Job, *schema.Reservation, *schema.Namespace or
	// *schema.JobGroup; nil: there is none.
	Before, After any
	Namespace     string
	ForcedBy      []string         // the attributes whose change causes the action
	Status        schema.JobStatus // "" of what has no processes, and of what is new
	Running       time.Duration    // of the attempt that runs, 0 if none does
	Ran           time.Duration    // of all remembered attempts together
	Age           time.Duration    // since it was first accepted, 0 if that is not known
}

// InputOf is what policies see of a plan that is compared with a state.
func InputOf(p *plan.Plan, doc *state.Document, r Request) Input {
	in := Input{Request: r, Revision: doc.Revision, Before: doc.Desired, After: p.Next.Desired}
	in.Mode = p.Mode
	after := specsOf(&in.After)
	for i := range p.Changes {
		in.Changes = append(in.Changes, changeOf(&p.Changes[i], doc, after, r.Time))
	}
	in.Usage = usageOf(doc, p.Next)
	return in
}

func changeOf(c *plan.Change, doc *state.Document, after map[schema.Address]any, now time.Time) Change {
	out := Change{Change: *c, After: after[c.Addr]}
	if c.Verb == plan.VerbDelete {
		out.After = nil
	}
	if j := doc.Jobs[c.Addr]; j != nil {
		out.Before, out.Status = j.Spec, j.Status
		out.Age = since(j.AdmittedAt, now)
		for i := range j.Attempts {
			out.Ran += lasted(&j.Attempts[i], now)
		}
		if last := j.Last(); last != nil && last.EndedAt.IsZero() && last.Outcome == "" {
			out.Running = lasted(last, now)
		}
	}
	if r, ok := doc.Resources[c.Addr]; ok {
		out.Before, out.Age = resourceSpec(r), since(r.Since, now)
	}
	out.Namespace = namespaceOf(out.Before)
	if out.After != nil {
		out.Namespace = namespaceOf(out.After)
	}
	for i := range c.Attrs {
		if c.Attrs[i].Verb == c.Verb && (c.Verb == plan.VerbUpdate || c.Verb == plan.VerbRestart || c.Verb == plan.VerbReplace) {
			out.ForcedBy = append(out.ForcedBy, c.Attrs[i].Path)
		}
	}
	return out
}

func since(t, now time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(0, now.Sub(t))
}

// lasted is how long an attempt ran.
func lasted(a *state.Attempt, now time.Time) time.Duration {
	if a.EndedAt.IsZero() {
		return since(a.StartedAt, now)
	}
	return since(a.StartedAt, a.EndedAt)
}

// specsOf are the specs of what is desired.
func specsOf(d *schema.Desired) map[schema.Address]any {
	all := map[schema.Address]any{}
	for i := range d.Namespaces {
		all[d.Namespaces[i].Addr] = &d.Namespaces[i]
	}
	for i := range d.Reservations {
		all[d.Reservations[i].Addr] = &d.Reservations[i]
	}
	for i := range d.Groups {
		all[d.Groups[i].Addr] = &d.Groups[i]
	}
	for i := range d.Jobs {
		all[d.Jobs[i].Addr] = &d.Jobs[i]
	}
	return all
}

func resourceSpec(r state.Resource) any {
	switch {
	case r.Namespace != nil:
		return r.Namespace
	case r.Reservation != nil:
		return r.Reservation
	case r.Group != nil:
		return r.Group
	}
	return nil
}

// namespaceOf is the namespace of a spec; of a namespace itself, its name.
func namespaceOf(spec any) string {
	switch s := spec.(type) {
	case *schema.Job:
		return s.Namespace
	case *schema.Reservation:
		return s.Namespace
	case *schema.JobGroup:
		return s.Namespace
	case *schema.Namespace:
		return s.Addr.Name
	}
	return ""
}
