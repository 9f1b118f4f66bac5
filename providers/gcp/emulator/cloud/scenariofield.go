package cloud

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/fray-ml/fray/schema"
)

// field is an attribute and what takes its value. An error is the detail of a diagnostic.
type field struct {
	name string
	take func(value cty.Value, at hcl.Range) error
}

// body reads the attributes of a body and returns its blocks. Misspelt names are
// the HCL library's to report.
func (d *scenarioReader) body(b hcl.Body, fields []field, blocks []hcl.BlockHeaderSchema) hcl.Blocks {
	want := &hcl.BodySchema{Blocks: blocks}
	for _, f := range fields {
		want.Attributes = append(want.Attributes, hcl.AttributeSchema{Name: f.name})
	}
	content, diags := b.Content(want)
	d.diags = append(d.diags, diags...)
	for _, f := range fields {
		attribute, ok := content.Attributes[f.name]
		if !ok {
			continue
		}
		value, diags := attribute.Expr.Value(nil)
		d.diags = append(d.diags, diags...)
		if diags.HasErrors() {
			continue
		}
		if err := f.take(value, attribute.Expr.Range()); err != nil {
			d.wrong(attribute.Expr.Range(), fmt.Sprintf("Bad value of %s", f.name), err.Error())
		}
	}
	return content.Blocks
}

// required reports attributes that a block must have.
func (d *scenarioReader) required(b *hcl.Block, names ...string) {
	attributes, _ := b.Body.JustAttributes() // what is wrong with them is reported by body
	for _, name := range names {
		if _, ok := attributes[name]; !ok {
			d.wrong(b.DefRange, "Missing argument", fmt.Sprintf("A %s block needs %q.", b.Type, name))
		}
	}
}

func (d *scenarioReader) wrong(at hcl.Range, summary, detail string) {
	d.diags = append(d.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at})
}

// meant is " Did you mean X?" if one of the names is near, else "".
func meant(name string, names []string) string {
	if near := schema.Nearest(name, names); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	return ""
}

// conditionsFields are the attributes of conditions.
func conditionsFields(w *Conditions) []field {
	return []field{
		{"provisioning", rangeInto(&w.Provisioning)}, {"boot", rangeInto(&w.Boot)}, {"boot_spread", rangeInto(&w.BootSpread)},
		{"operation_lag", rangeInto(&w.OperationLag)}, {"deletion", rangeInto(&w.Deletion)},
		{"stockout_after", rangeInto(&w.StockoutAfter)}, {"preemption_every", durationInto(&w.Preemption)},
		{"preemption_notice", shareInto(&w.Notice)}, {"other_end_states", shareInto(&w.OtherEndStates)}, {"stale_states", shareInto(&w.StaleStates)},
		{"stale_for", rangeInto(&w.StaleFor)}, {"maintenance_every", durationInto(&w.Maintenance)},
		{"maintenance_for", rangeInto(&w.MaintenanceFor)}, {"late_failures", shareInto(&w.LateFailures)},
		{"create_preempted", shareInto(&w.CreatePreempted)}, {"dead_hosts", shareInto(&w.DeadHosts)},
		{"bad_hosts", shareInto(&w.BadHosts)}, {"unknown_health_for", rangeInto(&w.UnknownHealthFor)},
		{"stuck_deletions", shareInto(&w.StuckDeletions)}, {"stuck_for", rangeInto(&w.StuckFor)},
		{"suspension", rangeInto(&w.Suspension)}, {"lingering_nodes", shareInto(&w.Lingering)},
	}
}

// take makes a taker of a function that only needs the value.
func take[T any](read func(cty.Value) (T, error), into *T) func(cty.Value, hcl.Range) error {
	return func(v cty.Value, _ hcl.Range) error {
		got, err := read(v)
		if err == nil {
			*into = got
		}
		return err
	}
}

func textInto(into *string) func(cty.Value, hcl.Range) error { return take(text, into) }

func text(v cty.Value) (string, error) {
	if v.IsNull() || v.Type() != cty.String {
		return "", badValue("Write it in quotes.")
	}
	return v.AsString(), nil
}

func textsInto(into *[]string) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) ([]string, error) {
		if v.IsNull() || !v.CanIterateElements() || v.Type().IsObjectType() {
			return nil, badValue("Write a list of texts in brackets.")
		}
		var all []string
		for _, e := range v.AsValueSlice() {
			s, err := text(e)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	}, into)
}

func flagInto(into *bool) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (bool, error) {
		if v.IsNull() || v.Type() != cty.Bool {
			return false, badValue("Write true or false.")
		}
		return v.True(), nil
	}, into)
}

func seedInto(into *uint64) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (n uint64, err error) {
		if v.IsNull() || v.Type() != cty.Number || gocty.FromCtyValue(v, &n) != nil {
			return 0, badValue("Write a whole number from 0.")
		}
		return n, nil
	}, into)
}

func countInto(into *int, least int) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (int, error) { return count(v, least) }, into)
}

func count(v cty.Value, least int) (n int, err error) {
	if v.IsNull() || v.Type() != cty.Number || gocty.FromCtyValue(v, &n) != nil || n < least {
		return 0, badValue("Write a whole number from %d.", least)
	}
	return n, nil
}

func rateInto(into *float64) func(cty.Value, hcl.Range) error { return take(rate, into) }

func rate(v cty.Value) (float64, error) {
	if v.IsNull() || v.Type() != cty.Number || v.AsBigFloat().Sign() < 0 || v.AsBigFloat().Cmp(big.NewFloat(1)) > 0 {
		return 0, badValue("Write a share from 0 to 1: 0.01 is one in a hundred.")
	}
	p, _ := v.AsBigFloat().Float64()
	return p, nil
}

func shareInto(into *Share) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (Share, error) {
		p, err := rate(v)
		return Of(p), err
	}, into)
}

func durationInto(into *time.Duration) func(cty.Value, hcl.Range) error { return take(duration, into) }

func duration(v cty.Value) (time.Duration, error) {
	s, err := text(v)
	if err != nil {
		return 0, badValue("Write a time in quotes, such as \"90s\" or \"2h30m\".")
	}
	var d schema.Duration
	if err := d.UnmarshalText([]byte(s)); err != nil || d < 0 {
		return 0, badValue("%q is no time: write it as \"90s\" or \"2h30m\".", s)
	}
	return time.Duration(d), nil
}

// rangeInto takes one time or two, between which one is drawn.
func rangeInto(into *Range) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (Range, error) {
		if !v.IsNull() && v.Type() == cty.String {
			d, err := duration(v)
			return Range{d, d}, err
		}
		if v.IsNull() || !v.Type().IsTupleType() || v.LengthInt() != 2 {
			return Range{}, badValue("Write a time \"90s\", or two to draw from: [\"1m\", \"5m\"].")
		}
		low, err := duration(v.Index(cty.NumberIntVal(0)))
		if err != nil {
			return Range{}, err
		}
		high, err := duration(v.Index(cty.NumberIntVal(1)))
		if err == nil && high < low {
			err = badValue("The second time is shorter than the first.")
		}
		return Range{low, high}, err
	}, into)
}

func oneOfInto(into *string, names ...string) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (string, error) {
		s, err := text(v)
		if err == nil && !slices.Contains(names, s) {
			err = badValue("%q is none of %s.%s", s, strings.Join(names, ", "), meant(s, names))
		}
		return s, err
	}, into)
}

func typeInto(into *string) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (string, error) {
		s, err := text(v)
		if err == nil {
			err = checkType(s)
		}
		return s, err
	}, into)
}

// quotaTypeInto takes a type of capacity, or that of all GPUs together.
func quotaTypeInto(into *string) func(cty.Value, hcl.Range) error {
	return func(v cty.Value, at hcl.Range) error {
		if s, err := text(v); err == nil && s == TypeGPU {
			*into = s
			return nil
		}
		return typeInto(into)(v, at)
	}
}

// checkType holds the name of a type of capacity to the known ones.
func checkType(name string) error {
	names := append(slices.Collect(maps.Keys(offered())), families()...)
	names = slices.AppendSeq(names, maps.Keys(offeredGPUs()))
	slices.Sort(names)
	if name == "v5e" {
		return badValue("There is no type %q. Did you mean \"v5litepod\"?", name)
	}
	if !slices.Contains(names, name) {
		return badValue("There is no type %q.%s Types are TPU generations, GPUs and machine families: %s.", name, meant(name, names), strings.Join(names, ", "))
	}
	return nil
}

func capacityInto(into *map[string]int) func(cty.Value, hcl.Range) error {
	return take(func(v cty.Value) (map[string]int, error) {
		if v.IsNull() || !v.Type().IsObjectType() {
			return nil, badValue("Write chips, GPUs or cores by type: { \"v5litepod\" = 64 }.")
		}
		all := map[string]int{}
		for k, e := range v.AsValueMap() {
			n, err := count(e, 0)
			if err != nil {
				return nil, err
			}
			if err := checkType(k); err != nil {
				return nil, err
			}
			all[k] = n
		}
		return all, nil
	}, into)
}

// zoneInto takes the name of a zone, which is checked when all zones are known.
func (d *scenarioReader) zoneInto(into *string) func(cty.Value, hcl.Range) error {
	return func(v cty.Value, at hcl.Range) error {
		s, err := text(v)
		if err == nil {
			*into = s
			d.zones = append(d.zones, placed{s, at})
		}
		return err
	}
}

// badValue is an error whose text is the detail of a diagnostic.
type valueError string

func (s valueError) Error() string { return string(s) }

func badValue(format string, args ...any) error { return valueError(fmt.Sprintf(format, args...)) }
