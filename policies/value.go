package policies

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/schema"
)

// Value is the plan as rules see it, as docs/policy-input.md describes it. Secrets are
// sensitive and not known.
func Value(in policy.Input) cty.Value {
	changes := make([]cty.Value, 0, len(in.Changes))
	for i := range in.Changes {
		changes = append(changes, changeValue(&in.Changes[i]))
	}
	byNamespace := make(map[string]cty.Value, len(in.Usage.ByNamespace))
	for name, t := range in.Usage.ByNamespace {
		byNamespace[name] = takenValue(t)
	}
	parts := map[string]cty.Value{
		"format_version": cty.StringVal(policy.FormatVersion),
		"mode":           cty.StringVal(modeName(in.Mode)),
		"workspace":      cty.StringVal(in.Workspace),
		"time":           cty.StringVal(in.Time.UTC().Format(time.RFC3339)),
		"revision":       cty.NumberUIntVal(in.Revision),
		"who": cty.ObjectVal(map[string]cty.Value{
			"name": cty.StringVal(in.Who.Name()), "user": cty.StringVal(in.Who.User),
			"host": cty.StringVal(in.Who.Host), "ci": cty.StringVal(in.Who.CI),
		}),
		"targets":      addresses(in.Targets),
		"replace":      addresses(in.Replace),
		"changes":      cty.TupleVal(changes),
		"counts":       countsOf(cty.TupleVal(changes)),
		"total":        takenValue(in.Usage.Total),
		"by_namespace": cty.ObjectVal(byNamespace),
	}
	maps.Copy(parts, desiredValues(&in.After))
	return cty.ObjectVal(parts)
}

// verbs are the actions of changes.
func verbs() []plan.Verb {
	return []plan.Verb{plan.VerbCreate, plan.VerbUpdate, plan.VerbRestart, plan.VerbReplace, plan.VerbDelete, plan.VerbNone}
}

// countsOf are the numbers of changes by action.
func countsOf(changes cty.Value) cty.Value {
	counts := map[string]int64{}
	for _, v := range verbs() {
		counts[string(v)] = 0
	}
	for _, c := range elements(changes) {
		if action := textIn(c, "action"); action != "" {
			counts[action]++
		}
	}
	parts := map[string]cty.Value{}
	for verb, n := range counts {
		parts[verb] = cty.NumberIntVal(n)
	}
	return cty.ObjectVal(parts)
}

func modeName(m plan.Mode) string {
	if m == plan.ModeApply {
		return "apply"
	}
	return string(m)
}

func addresses(addrs []schema.Address) cty.Value {
	vals := make([]cty.Value, 0, len(addrs))
	for _, a := range addrs {
		vals = append(vals, cty.StringVal(a.String()))
	}
	return cty.TupleVal(vals)
}

// desiredValues are the lists of all that is declared once the plan is carried out.
func desiredValues(d *schema.Desired) map[string]cty.Value {
	var jobs, pools, namespaces, groups, providers []cty.Value
	for i := range d.Jobs {
		jobs = append(jobs, specValue(&d.Jobs[i]))
	}
	for i := range d.Reservations {
		pools = append(pools, specValue(&d.Reservations[i]))
	}
	for i := range d.Namespaces {
		namespaces = append(namespaces, specValue(&d.Namespaces[i]))
	}
	for i := range d.Groups {
		groups = append(groups, specValue(&d.Groups[i]))
	}
	for i := range d.Providers {
		providers = append(providers, providerValue(&d.Providers[i]))
	}
	return map[string]cty.Value{
		"jobs": cty.TupleVal(jobs), "reservations": cty.TupleVal(pools), "namespaces": cty.TupleVal(namespaces),
		"job_groups": cty.TupleVal(groups), "providers": cty.TupleVal(providers),
	}
}

func providerValue(p *schema.Provider) cty.Value {
	zones := make([]cty.Value, 0, len(p.Zones))
	for _, z := range p.Zones {
		zones = append(zones, cty.StringVal(z))
	}
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal(string(p.Name)), "project": cty.StringVal(p.Project), "zones": cty.TupleVal(zones), "address": cty.StringVal(p.Address),
	})
}

// specValue is a spec with the parts of its address; null for none.
func specValue(spec any) cty.Value {
	var val cty.Value
	var addr schema.Address
	switch s := spec.(type) {
	case *schema.Job:
		val, addr = lang.SpecValue(*s), s.Addr
	case *schema.Reservation:
		val, addr = lang.SpecValue(*s), s.Addr
	case *schema.Namespace:
		val, addr = lang.SpecValue(*s), s.Addr
	case *schema.JobGroup:
		val, addr = lang.SpecValue(*s), s.Addr
	default:
		return cty.NullVal(cty.DynamicPseudoType)
	}
	parts := val.AsValueMap()
	delete(parts, "addr")
	maps.Copy(parts, identity(addr))
	parts["chips"] = cty.NumberIntVal(int64(policy.ChipsOf(spec)))
	return cty.ObjectVal(parts)
}

// identity is an address taken apart.
func identity(addr schema.Address) map[string]cty.Value {
	key := cty.NullVal(cty.DynamicPseudoType)
	if n, ok := addr.Key.Int(); ok {
		key = cty.NumberIntVal(int64(n))
	} else if s, ok := addr.Key.Str(); ok {
		key = cty.StringVal(s)
	}
	return map[string]cty.Value{
		"address": cty.StringVal(addr.String()), "kind": cty.StringVal(string(addr.Kind)), "module": cty.StringVal(addr.Module),
		"group": cty.StringVal(addr.Group), "name": cty.StringVal(addr.Name), "key": key,
	}
}

func changeValue(c *policy.Change) cty.Value {
	attrs := make([]cty.Value, 0, len(c.Attrs))
	for i := range c.Attrs {
		attrs = append(attrs, attributeValue(c.Attrs[i]))
	}
	parts := identity(c.Addr)
	maps.Copy(parts, map[string]cty.Value{
		"namespace": cty.StringVal(c.Namespace), "action": cty.StringVal(string(c.Verb)), "reason": cty.StringVal(c.Reason),
		"action_reason": cty.StringVal(string(c.ActionReason)), "before": specValue(c.Before), "after": specValue(c.After),
		"attributes": cty.TupleVal(attrs), "forced_by": texts(c.ForcedBy), "status": cty.StringVal(string(c.Status)),
		"running_seconds": seconds(c.Running), "ran_seconds": seconds(c.Ran), "age_seconds": seconds(c.Age),
	})
	return cty.ObjectVal(parts)
}

func seconds(d time.Duration) cty.Value { return cty.NumberIntVal(int64(d / time.Second)) }

func texts(words []string) cty.Value {
	vals := make([]cty.Value, 0, len(words))
	for _, w := range words {
		vals = append(vals, cty.StringVal(w))
	}
	return cty.TupleVal(vals)
}

func attributeValue(a *plan.AttrChange) cty.Value {
	before, after := rawValue(a.Before), rawValue(a.After)
	switch {
	case a.Sensitive:
		before, after = hidden(), hidden()
	case a.Unknown:
		after = cty.DynamicVal
	}
	return cty.ObjectVal(map[string]cty.Value{
		"path": cty.StringVal(a.Path), "before": before, "after": after, "action": cty.StringVal(string(a.Verb)),
		"sensitive": cty.BoolVal(a.Sensitive), "unknown": cty.BoolVal(a.Unknown), "variables": texts(a.Variables),
	})
}

// hidden is a secret.
func hidden() cty.Value { return cty.UnknownVal(cty.String).Mark(mark.Sensitive{}) }

func takenValue(t policy.Taken) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"before": amountValue(t.Before), "after": amountValue(t.After)})
}

func amountValue(a policy.Amount) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"slices": cty.NumberIntVal(int64(a.Slices)), "chips": cty.NumberIntVal(int64(a.Chips)),
		"on_demand_chips": cty.NumberIntVal(int64(a.OnDemand)), "spot_chips": cty.NumberIntVal(int64(a.Spot)),
		"cost_per_hour": priceValue(a.PerHour), "cost_per_month": priceValue(a.PerHour.Times(accelerators.HoursPerMonth)),
		"unknown_prices": cty.NumberIntVal(int64(a.Unknown)),
	})
}

func priceValue(p accelerators.Price) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"low": dollars(p.Low), "high": dollars(p.High)})
}

// dollars is an amount to the cent's hundredth, without what sums of fractions leave behind.
func dollars(amount float64) cty.Value {
	const digits = 1e4
	return cty.NumberFloatVal(float64(int64(amount*digits+0.5)) / digits)
}

// rawValue is a value of JSON.
func rawValue(raw json.RawMessage) cty.Value {
	if len(raw) == 0 {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return cty.DynamicVal
	}
	return fromJSON(v)
}

// Members of objects that stand for what a document of JSON does not have.
const (
	sensitiveMember = "sensitive"
	sealedMember    = "sealed"
	unknownMember   = "unknown"
)

func fromJSON(v any) cty.Value {
	switch v := v.(type) {
	case string:
		return cty.StringVal(v)
	case bool:
		return cty.BoolVal(v)
	case json.Number:
		n, _, err := big.ParseFloat(v.String(), 10, 512, big.ToNearestEven)
		if err != nil {
			return cty.DynamicVal
		}
		return cty.NumberVal(n)
	case []any:
		items := make([]cty.Value, 0, len(v))
		for _, item := range v {
			items = append(items, fromJSON(item))
		}
		return cty.TupleVal(items)
	case map[string]any:
		if _, is := v[sealedMember]; is && len(v) == 1 || v[sensitiveMember] == true && len(v) == 1 {
			return hidden()
		}
		if v[unknownMember] == true && len(v) == 1 {
			return cty.DynamicVal
		}
		parts := make(map[string]cty.Value, len(v))
		for name, part := range v {
			parts[name] = fromJSON(part)
		}
		return cty.ObjectVal(parts)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// toJSON is a value as a document has it: {"sensitive": true} stands for a secret,
// {"unknown": true} for what is not known.
func toJSON(v cty.Value) any {
	plain, marks := v.Unmark()
	if _, is := marks[mark.Sensitive{}]; is {
		return map[string]any{sensitiveMember: true}
	}
	switch ty := plain.Type(); {
	case !plain.IsKnown():
		return map[string]any{unknownMember: true}
	case plain.IsNull():
		return nil
	case ty == cty.String:
		return plain.AsString()
	case ty == cty.Bool:
		return plain.True()
	case ty == cty.Number:
		return json.Number(plain.AsBigFloat().Text('f', -1))
	case ty.IsObjectType() || ty.IsMapType():
		parts := map[string]any{}
		for name, part := range plain.AsValueMap() {
			parts[name] = toJSON(part)
		}
		return parts
	}
	items := []any{}
	for it := plain.ElementIterator(); it.Next(); {
		_, item := it.Element()
		items = append(items, toJSON(item))
	}
	return items
}

// JSON is the plan as rules see it, as a document.
func JSON(val cty.Value) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(toJSON(val))
	return b.Bytes(), err
}
