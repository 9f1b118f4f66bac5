package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/schema"
)

// ReadValue reads what fray policy input wrote.
func ReadValue(path string) (cty.Value, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return cty.NilVal, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return cty.NilVal, fmt.Errorf("read %s: %w", path, err)
	}
	major, _, _ := strings.Cut(policy.FormatVersion, ".")
	if version, _ := v["format_version"].(string); !strings.HasPrefix(version, major+".") || v["by_namespace"] == nil {
		return cty.NilVal, fmt.Errorf("%s is no document of fray policy input of version %s", path, policy.FormatVersion)
	}
	return Complete(fromJSON(v))
}

// Complete is a plan of which a case states only a part: all else is as in an empty plan, in
// a change of nothing, and in a spec that states nothing.
func Complete(given cty.Value) (cty.Value, error) {
	whole := Value(policy.Input{Request: policy.Request{Workspace: schema.DefaultWorkspace, Time: time.Unix(0, 0)}, Changes: nil})
	c := completer{}
	val := c.merge(whole, given, "plan")
	if c.err != nil {
		return cty.NilVal, c.err
	}
	parts := val.AsValueMap()
	parts["changes"] = c.each(parts["changes"], "plan.changes", c.change)
	for name, kind := range map[string]schema.Kind{
		"jobs": schema.KindJob, "reservations": schema.KindReservation, "namespaces": schema.KindNamespace, "job_groups": schema.KindJobGroup,
	} {
		parts[name] = c.each(parts[name], "plan."+name, func(v cty.Value, at string) cty.Value { return c.spec(v, at, kind) })
	}
	parts["providers"] = c.each(parts["providers"], "plan.providers", func(v cty.Value, at string) cty.Value {
		return c.merge(providerValue(&schema.Provider{}), v, at)
	})
	byNamespace := map[string]cty.Value{}
	for name, taken := range parts["by_namespace"].AsValueMap() {
		byNamespace[name] = c.merge(takenValue(policy.Taken{}), taken, "plan.by_namespace."+name)
	}
	parts["by_namespace"] = cty.ObjectVal(byNamespace)
	if !isObject(given) || !given.Type().HasAttribute("counts") {
		parts["counts"] = countsOf(parts["changes"])
	}
	return cty.ObjectVal(parts), c.err
}

// completer fills in what is left out, and remembers the first mistake.
type completer struct{ err error }

func (c *completer) fail(format string, args ...any) cty.Value {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	return cty.DynamicVal
}

// each completes the elements of a list.
func (c *completer) each(list cty.Value, at string, one func(cty.Value, string) cty.Value) cty.Value {
	if !isList(list) {
		return c.fail("%s is no list", at)
	}
	var items []cty.Value
	for i, item := range elements(list) {
		items = append(items, one(item, fmt.Sprintf("%s[%d]", at, i)))
	}
	return cty.TupleVal(items)
}

func isList(v cty.Value) bool {
	return v.IsKnown() && !v.IsNull() && !v.IsMarked() && (v.Type().IsTupleType() || v.Type().IsListType() || v.Type().IsSetType())
}

func isObject(v cty.Value) bool {
	return v != cty.NilVal && v.IsKnown() && !v.IsNull() && !v.IsMarked() && (v.Type().IsObjectType() || v.Type().IsMapType())
}

func elements(v cty.Value) []cty.Value {
	if !isList(v) {
		return nil
	}
	return v.AsValueSlice()
}

// textIn is a string of an object, "" if it has none.
func textIn(v cty.Value, name string) string {
	if !isObject(v) || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return ""
	}
	text := v.GetAttr(name)
	if text.IsMarked() || !text.IsKnown() || text.IsNull() || text.Type() != cty.String {
		return ""
	}
	return text.AsString()
}

func (c *completer) change(given cty.Value, at string) cty.Value {
	whole := policy.Change{Change: plan.Change{Verb: plan.VerbNone}}
	var kind schema.Kind
	if text := textIn(given, "address"); text != "" {
		addr, err := schema.ParseAddress(text)
		if err != nil {
			return c.fail("%s.address: %v", at, err)
		}
		whole.Addr, kind = addr, addr.Kind
	}
	val := c.merge(changeValue(&whole), given, at)
	if c.err != nil {
		return val
	}
	parts := val.AsValueMap()
	if action := textIn(val, "action"); !slices.Contains(verbs(), plan.Verb(action)) {
		return c.fail("%s.action: want one of %v", at, verbs())
	}
	for _, side := range []string{"before", "after"} {
		if spec := parts[side]; !spec.IsNull() {
			parts[side] = c.spec(spec, at+"."+side, kind)
		}
	}
	parts["attributes"] = c.each(parts["attributes"], at+".attributes", func(v cty.Value, at string) cty.Value {
		return c.merge(attributeValue(&plan.AttrChange{Verb: plan.VerbNone}), v, at)
	})
	return cty.ObjectVal(parts)
}

// spec completes a spec of a kind.
func (c *completer) spec(given cty.Value, at string, kind schema.Kind) cty.Value {
	var addr schema.Address
	if text := textIn(given, "address"); text != "" {
		var err error
		if addr, err = schema.ParseAddress(text); err != nil {
			return c.fail("%s.address: %v", at, err)
		}
		kind = addr.Kind
	}
	var whole any
	switch kind {
	case schema.KindJob, schema.KindActorService:
		whole = &schema.Job{Addr: addr, Resources: schema.Resources{Slices: 1}}
	case schema.KindReservation:
		whole = &schema.Reservation{Addr: addr}
	case schema.KindNamespace:
		whole = &schema.Namespace{Addr: addr}
	case schema.KindJobGroup:
		whole = &schema.JobGroup{Addr: addr}
	case schema.KindNotification:
		return given
	default:
		return given
	}
	return c.merge(specValue(whole), given, at)
}

// merge is whole with what is given in place of its parts. An object without parts takes
// any name, and a null anything.
func (c *completer) merge(whole, given cty.Value, at string) cty.Value {
	if c.err != nil || given.IsMarked() || !given.IsKnown() || given.IsNull() || whole.IsMarked() || !whole.IsKnown() || whole.IsNull() {
		return given
	}
	switch ty := whole.Type(); {
	case ty.IsTupleType():
		if !isList(given) {
			return c.fail("%s is no list", at)
		}
		return given
	case !ty.IsObjectType():
		if !given.Type().Equals(ty) {
			return c.fail("%s is no %s", at, ty.FriendlyName())
		}
		return given
	case !isObject(given):
		return c.fail("%s is no object", at)
	case len(ty.AttributeTypes()) == 0:
		return given
	}
	parts := whole.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(given.AsValueMap())) {
		known, ok := parts[name]
		if !ok {
			names := slices.Sorted(maps.Keys(parts))
			hint := "there are " + strings.Join(names, ", ")
			if near := schema.Nearest(name, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return c.fail("%s has no %q; %s", at, name, hint)
		}
		parts[name] = c.merge(known, given.AsValueMap()[name], at+"."+name)
	}
	return cty.ObjectVal(parts)
}
