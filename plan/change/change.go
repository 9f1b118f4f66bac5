package change

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Attr is one attribute of a spec, flattened.
type Attr struct {
	path      string
	value     json.RawMessage
	sensitive bool
	unknown   bool
	token     string // stands for a sensitive value in comparisons: its sealed form
}

type attrList struct{ attrs []Attr }

// add appends an attribute unless it has its zero value.
func (l *attrList) add(path string, value any, zero bool) {
	if zero {
		return
	}
	l.attrs = append(l.attrs, Attr{path: path, value: encode(value)})
}

// maxPlain is a number that JSON writes without an exponent, as all smaller ones.
const maxPlain = 1e15

// encode is json.Marshal with a short way for what specs mostly hold.
func encode(value any) json.RawMessage {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(nil, v)
	case int:
		return strconv.AppendInt(nil, int64(v), 10)
	case float64:
		if n := int64(v); v != 0 && float64(n) == v && n > -maxPlain && n < maxPlain {
			return strconv.AppendInt(nil, n, 10)
		}
	case schema.ProviderName:
		return encode(string(v))
	case schema.Duration:
		return json.RawMessage(`"` + v.String() + `"`)
	case string:
		if isPlain(v) {
			return json.RawMessage(`"` + v + `"`)
		}
	case []string:
		if len(v) > 0 && !slices.ContainsFunc(v, func(s string) bool { return !isPlain(s) }) {
			return json.RawMessage(`["` + strings.Join(v, `","`) + `"]`)
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage(`"(` + strings.ReplaceAll(err.Error(), `"`, "'") + `)"`)
	}
	return data
}

// isPlain reports whether JSON writes a string as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// text appends an attribute that may be secret or unknown.
func (l *attrList) text(path string, t schema.Text) {
	switch {
	case t.IsUnknown():
		l.attrs = append(l.attrs, Attr{path: path, unknown: true})
	case t.IsSensitive():
		token, err := json.Marshal(t) // fails for one in clear, which then compares as changed
		if err != nil {
			token = nil
		}
		l.attrs = append(l.attrs, Attr{path: path, sensitive: true, token: string(token)})
	default:
		l.add(path, t.String(), false)
	}
}

// words appends a list of Texts: one sensitive or unknown word hides them all,
// since a word's neighbours often tell what it is.
func (l *attrList) words(path string, words []schema.Text) {
	plain := make([]string, 0, len(words))
	sensitive, unknown := false, false
	for _, w := range words {
		sensitive = sensitive || w.IsSensitive()
		unknown = unknown || w.IsUnknown()
		plain = append(plain, w.String())
	}
	switch {
	case sensitive:
		l.attrs = append(l.attrs, Attr{path: path, sensitive: true, token: tokenOf(words)})
	case unknown:
		l.attrs = append(l.attrs, Attr{path: path, unknown: true})
	default:
		l.add(path, plain, len(plain) == 0)
	}
}

// tokenOf stands for a list of Texts in comparisons: those in clear are left out, and so
// compare as changed.
func tokenOf(words []schema.Text) string {
	var token strings.Builder
	for _, w := range words {
		if data, err := json.Marshal(w); err == nil {
			token.Write(data)
		}
	}
	return token.String()
}

func shortSum(sum string) string { return sum[:min(12, len(sum))] }

// ResourceAttrs flattens a namespace, reservation, job group or notification. The result is
// not nil: that would mean that there is no such attribute.
func ResourceAttrs(r state.Resource) []Attr {
	l := attrList{attrs: []Attr{}}
	switch {
	case r.Namespace != nil:
		l.namespaceAttrs(r.Namespace)
	case r.Reservation != nil:
		v := r.Reservation
		l.add("provider", v.Provider, v.Provider == "")
		for _, end := range []struct {
			name string
			c    schema.Capacity
		}{{"min", v.Min}, {"max", v.Max}} {
			l.add(end.name+".tpu", end.c.TPU, end.c.TPU == "")
			l.gpu(end.name+".gpu", end.c.GPU)
			l.add(end.name+".cpu", end.c.CPU, end.c.CPU == 0)
			l.add(end.name+".memory", end.c.Memory.String(), end.c.Memory == 0)
			l.add(end.name+".disk", end.c.Disk.String(), end.c.Disk == 0)
			l.add(end.name+".slices", end.c.Slices, false)
		}
		l.add("priority", v.Priority, v.Priority == 0)
		l.add("ttl", v.TTL, v.TTL == 0)
		l.add("idle_timeout", v.IdleTimeout, v.IdleTimeout == 0)
		l.add("growth", v.Growth, v.Growth == "")
		l.add("namespace", v.Namespace, v.Namespace == "")
		l.add("preemptible", v.Preemptible, false)
		l.add("zones", v.Zones, len(v.Zones) == 0)
		l.add("regions", v.Regions, len(v.Regions) == 0)
		l.cloudAttrs("", &v.Cloud)
	case r.Group != nil:
		l.add("namespace", r.Group.Namespace, r.Group.Namespace == "")
		l.add("same_region", true, !r.Group.SameRegion)
		l.add("same_zone", true, !r.Group.SameZone)
	case r.Notification != nil:
		l.notificationAttrs(r.Notification)
	}
	return l.attrs
}

func (l *attrList) gpu(path string, g schema.GPU) {
	l.add(path+".type", g.Type, g.Type == "")
	l.add(path+".count", g.Count, g.Count == 0)
}

func (l *attrList) namespaceAttrs(n *schema.Namespace) {
	share := func(prefix string, s *schema.UserShare) {
		l.add(prefix+"max_chips", s.MaxChips, s.MaxChips == 0)
		l.add(prefix+"max_cpu", s.MaxCPU, s.MaxCPU == 0)
		l.add(prefix+"budget", s.Budget, s.Budget == 0)
		l.add(prefix+"weight", s.Weight, s.Weight == 0)
	}
	share("", &schema.UserShare{MaxChips: n.MaxChips, MaxCPU: n.MaxCPU, Budget: n.Budget, Weight: n.Weight})
	l.add("idle_timeout", n.IdleTimeout, n.IdleTimeout == 0)
	l.add("cost.max_per_month", n.Cost.MaxPerMonth, n.Cost.MaxPerMonth == 0)
	l.add("cost.action", n.Cost.Action, n.Cost.Action == "")
	l.add("cost.warn_at", n.Cost.WarnAt, n.Cost.WarnAt == 0)
	l.add("cost.price", n.Cost.Price, n.Cost.Price == "")
	for i := range n.Users {
		share("user."+n.Users[i].Name+".", &n.Users[i])
	}
}

// ChangedAttrs merges two flattened specs, of which one may be nil. Attributes that are only in one are
// its creation or removal; equal ones have VerbNone.
func ChangedAttrs(before, after []Attr) []*plan.AttrChange {
	var old map[string]*Attr
	if len(before) > 0 {
		old = make(map[string]*Attr, len(before))
	}
	for i := range before {
		old[before[i].path] = &before[i]
	}
	values := make([]plan.AttrChange, 0, max(len(before), len(after)))
	for i := range after {
		a := &after[i]
		b := old[a.path]
		delete(old, a.path)
		c := plan.AttrChange{Path: a.path, After: a.value, Unknown: a.unknown, Sensitive: a.sensitive, Verb: plan.VerbNone}
		if b != nil {
			c.Before, c.Sensitive = b.value, a.sensitive || b.sensitive
		}
		if before != nil && !sameAttr(a, b) {
			c.Verb = attrVerb(a.path)
		} else if before == nil {
			c.Verb = plan.VerbCreate
		}
		values = append(values, hidden(c))
	}
	for i := range before {
		b := &before[i]
		if old[b.path] == nil {
			continue
		}
		c := plan.AttrChange{Path: b.path, Before: b.value, Sensitive: b.sensitive, Verb: plan.VerbDelete}
		if after != nil {
			c.Verb = attrVerb(b.path)
		}
		values = append(values, hidden(c))
	}
	return pointers(values)
}

// pointers are those of some attributes.
func pointers(values []plan.AttrChange) []*plan.AttrChange {
	out := make([]*plan.AttrChange, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

func sameAttr(a, b *Attr) bool {
	return b != nil && a.sensitive == b.sensitive && a.unknown == b.unknown && a.token == b.token && bytes.Equal(a.value, b.value) && !a.unknown
}

func hidden(c plan.AttrChange) plan.AttrChange {
	if c.Sensitive {
		c.Before, c.After = nil, nil
	}
	return c
}

// Strongest is the verb that all attribute changes together cause.
func Strongest(attrs []*plan.AttrChange) plan.Verb {
	verb := plan.VerbNone
	for i := range attrs {
		switch v := attrs[i].Verb; {
		case v == plan.VerbReplace, verb == plan.VerbReplace:
			verb = plan.VerbReplace
		case v == plan.VerbRestart, verb == plan.VerbRestart:
			verb = plan.VerbRestart
		case v == plan.VerbUpdate:
			verb = plan.VerbUpdate
		}
	}
	return verb
}

// Removal is the change of a declaration that is made no more.
func Removal(addr schema.Address, r state.Resource) plan.Change {
	return plan.Change{Addr: addr, Verb: plan.VerbDelete, Attrs: ChangedAttrs(ResourceAttrs(r), nil)}
}

// RecordOf is a declaration as it is recorded.
func RecordOf(spec any, r state.Resource) state.Resource {
	digest, err := schema.DigestOf(spec)
	if err != nil {
		digest = "" // declarations hold no secrets and encode; the specs are compared anyway
	}
	r.Digest = digest
	return r
}

// ResourceChange compares two declarations of one address.
func ResourceChange(addr schema.Address, cur, r state.Resource) plan.Change {
	change := plan.Change{Addr: addr, Attrs: ChangedAttrs(ResourceAttrs(cur), ResourceAttrs(r))}
	change.Verb = Strongest(change.Attrs)
	switch change.Verb {
	case plan.VerbRestart: // nothing of its own runs; its jobs say what they do
		change.Verb = plan.VerbUpdate
	case plan.VerbReplace:
		change.ActionReason = plan.ReplaceBecauseUpdate
	case plan.VerbNone, plan.VerbCreate, plan.VerbUpdate, plan.VerbDelete:
	}
	change.Explain(cur.Causes)
	return change
}
