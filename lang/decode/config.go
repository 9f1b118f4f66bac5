package decode

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// Config decodes all declarations, until it is canceled.
func Config(s *eval.Session) (*Decoding, *schema.Config) {
	w := New(s)
	c := &schema.Config{Dir: s.Source.Dir(), Ranges: map[string]hcl.Range{}, Blocks: map[string]schema.Block{}, Outputs: map[string]schema.Output{}}
	root := w.Root()
	c.Settings = root.Settings(root.Decls.Fray)
	w.Implied, w.GCP = s.ImpliedProvider(), root.gcpProvider()
	w.specs(&c.Desired)
	for _, name := range root.Decls.VariableNames() {
		if mark.IsEphemeral(root.Variables[name]) {
			c.Ephemeral = append(c.Ephemeral, name)
		}
	}
	c.Variables = root.variableValues()
	c.Desired.Providers = root.providers(&c.Desired)
	for _, name := range slices.Sorted(maps.Keys(root.Decls.Outputs)) {
		if s.Canceled() {
			return w, c
		}
		c.Outputs[name] = root.Output(root.Decls.Outputs[name])
	}
	for _, e := range w.Order {
		e.transfers(c)
		c.Conditions = append(c.Conditions, e.Conditions()...)
		e.ranges(c.Ranges)
		e.blocks(c.Blocks)
	}
	c.Partial, c.Momentary = s.Partial, s.Momentary
	return w, c
}

// specs decodes what has an address, and the controller.
func (w *Decoding) specs(d *schema.Desired) {
	for _, e := range w.Order {
		for _, decl := range e.Decls.Sorted(schema.KindNamespace) {
			d.Namespaces = append(d.Namespaces, e.namespace(decl))
		}
		for _, decl := range e.Decls.Sorted(schema.KindReservation) {
			if r, ok := e.Reservation(decl); ok {
				w.Reservations[r.Addr] = &r
				d.Reservations = append(d.Reservations, r)
			}
		}
		for _, decl := range e.Decls.Sorted(schema.KindJobGroup) {
			g := e.jobGroup(decl)
			e.groups[decl.Addr.Name] = &g
			d.Groups = append(d.Groups, g)
		}
		for _, decl := range e.Decls.Sorted(schema.KindNotification) {
			d.Notifications = append(d.Notifications, notification(e, decl))
		}
	}
	for _, e := range w.Order {
		for _, decl := range e.Decls.Sorted(schema.KindJob, schema.KindActorService) {
			if e.Canceled() {
				return
			}
			d.Jobs = withJobs(d.Jobs, e.Jobs(decl))
		}
	}
	if len(w.Order) > 1 {
		sortByAddress(d)
	}
	w.checkGroups(d.Jobs)
	w.checkTies(d)
	root := w.Root()
	d.Controller = root.controller()
	d.Local = root.Options.Local
}

// withJobs are the jobs of some blocks and those of the next one, which are not copied where
// they are the first: one block may have a million.
func withJobs(jobs, more []schema.Job) []schema.Job {
	if len(jobs) == 0 {
		return more
	}
	return append(jobs, more...)
}

// sortByAddress puts what several modules declare into one order.
func sortByAddress(d *schema.Desired) {
	slices.SortFunc(d.Namespaces, func(a, b schema.Namespace) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Reservations, func(a, b schema.Reservation) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Groups, func(a, b schema.JobGroup) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Notifications, func(a, b schema.Notification) int { return a.Addr.Compare(b.Addr) })
}

// variableValues are the values of the root's variables by their names, each a secret
// text of its name and value, for digests. Left out are those that are ephemeral and
// those that are not known.
func (e *Decoder) variableValues() map[string]schema.Text {
	values := map[string]schema.Text{}
	for name, val := range e.Variables {
		if mark.IsEphemeral(val) {
			continue
		}
		val, _ = val.UnmarkDeep()
		if !val.IsWhollyKnown() {
			continue
		}
		data, err := ctyjson.Marshal(val, cty.DynamicPseudoType)
		if err == nil {
			values[name] = schema.Secret(name + "\x00" + string(data))
		}
	}
	return values
}
