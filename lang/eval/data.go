package eval

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// read gives a data block its value, one for each instance.
func (e *Evaluator) read(name string) {
	decl := e.Decls.Data[name]
	if !e.expand(decl) {
		e.failed[configs.Symbol{Root: configs.RootData, Name: name}] = true
		return
	}
	kind := language.DataKind(decl.Block.Type.Variant)
	_, overridden := e.override(decl)
	waits := e.waitsFor(e.DependsOn(decl.Block)) && !overridden
	vals := make([]cty.Value, 0, len(decl.Instances))
	byKey := make(map[string]cty.Value, len(decl.Instances))
	for _, i := range decl.Instances {
		val := unknownData(kind)
		if !waits {
			var ok bool
			if val, ok = e.readOne(decl, kind, RepetitionData(i.Values())); !ok {
				e.failed[configs.Symbol{Root: configs.RootData, Name: name}] = true
				return
			}
		}
		key, _ := i.Key.Str()
		vals, byKey[key] = append(vals, val), val
	}
	switch decl.Repetition {
	case configs.Single:
		e.data[name] = vals[0]
	case configs.Counted:
		e.data[name] = cty.TupleVal(vals)
	case configs.Keyed:
		e.data[name] = cty.ObjectVal(byKey)
	}
}

// waitsFor reports whether something of what is waited for is not there yet.
func (e *Evaluator) waitsFor(addrs []schema.Address) bool {
	for _, addr := range addrs {
		of, decl := e.Declared(addr)
		if decl.Addr.Kind == schema.KindJobGroup {
			for _, job := range decl.Jobs {
				if of.waitsFor([]schema.Address{of.Global(job.Addr)}) {
					return true
				}
			}
		}
		for _, i := range decl.Instances {
			if !addr.Key.IsZero() && i.Key != addr.Key || decl.Addr.Kind == schema.KindJobGroup {
				continue
			}
			c := e.Options.Computed[of.Global(i.Addr(decl.Addr))]
			if c.Status != schema.JobSucceeded && (c.Status != schema.JobRunning || len(c.Addresses) == 0) {
				return true
			}
		}
	}
	return false
}

// readOne reads for one instance. What is not known yet gives what is not known
// yet; what cannot be read is an error, but for the data of a check.
func (e *Evaluator) readOne(decl *configs.Declaration, kind language.DataKind, s RepetitionData) (cty.Value, bool) {
	if o, ok := e.override(decl); ok {
		return e.overridden(kind, o)
	}
	b := decl.Block
	known := true
	b.Walk(func(x *configs.Expression) {
		if x.Mode == language.ModeValue {
			out := e.Eval(x, s)
			known = known && out.OK && out.Value.IsWhollyKnown()
		}
	})
	if !known {
		return unknownData(kind), true
	}
	before := len(e.Diags)
	var val cty.Value
	var err error
	switch kind {
	case language.DataOutputs:
		val, err = e.readOutputs(b, s)
	case language.DataReservation:
		val, err = e.readReservation(b, s)
	case language.DataAccelerators:
		val, err = e.readAccelerators(b, s)
	}
	if err == nil {
		return val, len(e.Diags) == before
	}
	d := diagnose.ErrorAt(b.Range(), "Data cannot be read", diagnose.Sentence(err.Error()))
	if decl.Check != "" {
		d.Severity = hcl.DiagWarning
	}
	e.Add(d)
	return unknownData(kind), decl.Check != ""
}

func (e *Evaluator) stackRef(b *configs.Block, s RepetitionData) (StackRef, error) {
	ref := StackRef{
		Path:      Get(e, s, b.Attr("path"), as.NotEmpty, ""),
		Bucket:    Get(e, s, b.Attr("bucket"), BucketName, ""),
		Prefix:    Get(e, s, b.Attr("prefix"), as.String, ""),
		Workspace: Get(e, s, b.Attr("workspace"), as.NotEmpty, ""),
	}
	if ref.Path != "" && ref.Bucket != "" {
		return ref, errors.New("a state is in a directory (path) or in a bucket: remove one of the two")
	}
	if ref.Path != "" {
		ref.Path = e.Absolute(ref.Path)
	}
	return ref, nil
}

func (e *Evaluator) readOutputs(b *configs.Block, s RepetitionData) (cty.Value, error) {
	ref, err := e.stackRef(b, s)
	if err != nil {
		return cty.NilVal, err
	}
	vals := e.defaultOutputs(b.Attr("defaults"), s)
	if e.Options.Data == nil {
		return unknownData(language.DataOutputs), nil
	}
	outputs, err := e.Options.Data.Outputs(ref)
	if err != nil {
		return cty.NilVal, err
	}
	for name, o := range outputs {
		typ, err := ctyjson.ImpliedType(o.JSON)
		if err != nil {
			return cty.NilVal, fmt.Errorf("read output %s: %w", name, err)
		}
		val, err := ctyjson.Unmarshal(o.JSON, typ)
		if err != nil {
			return cty.NilVal, fmt.Errorf("read output %s: %w", name, err)
		}
		if o.Sensitive {
			val = mark.MakeSensitive(val)
		}
		vals[name] = val
	}
	return cty.ObjectVal(map[string]cty.Value{"values": cty.ObjectVal(vals)}), nil
}

func (e *Evaluator) defaultOutputs(x *configs.Expression, s RepetitionData) map[string]cty.Value {
	vals := map[string]cty.Value{}
	if x == nil {
		return vals
	}
	out := e.Eval(x, s)
	switch ty := out.Value.Type(); {
	case !out.OK || out.Value.IsNull():
	case !ty.IsObjectType() && !ty.IsMapType():
		e.WrongValue(x, out, fmt.Errorf("want a map such as { queue = \"none\" }, this is %s", diagnose.Friendly(out.Value)))
	default:
		maps.Copy(vals, out.Value.AsValueMap())
	}
	return vals
}

func (e *Evaluator) readReservation(b *configs.Block, s RepetitionData) (cty.Value, error) {
	ref, err := e.stackRef(b, s)
	if err != nil {
		return cty.NilVal, err
	}
	name := Get(e, s, b.Attr("name"), as.NotEmpty, b.Name)
	if e.Options.Data == nil {
		return unknownData(language.DataReservation), nil
	}
	r, err := e.Options.Data.Reservation(ref, name)
	if err != nil {
		return cty.NilVal, err
	}
	number := func(n int) cty.Value { return cty.NumberIntVal(int64(n)) }
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal(name), "provider": cty.StringVal(string(r.Provider)), "tpu": cty.StringVal(r.Shape.TPU),
		"cpu": cty.NumberFloatVal(r.Shape.CPU), "memory": cty.NumberIntVal(int64(r.Shape.Memory)),
		"preemptible": cty.BoolVal(r.Preemptible), "min": number(r.Shape.Slices), "max": number(r.Max),
		"slices": stringValues(r.Slices), "allocated": number(r.Allocated), "free": number(len(r.Slices) - r.Allocated),
	}), nil
}

func stringValues(items []string) cty.Value {
	if len(items) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	return knownList(items)
}

func (e *Evaluator) readAccelerators(b *configs.Block, s RepetitionData) (cty.Value, error) {
	chips := as.WholeNumber(1, math.MaxInt32)
	query := accelerators.Query{
		Provider:   Get(e, s, b.Attr("provider"), as.OneOf(schema.ProviderNames()...), e.ImpliedProvider()),
		Generation: Get(e, s, b.Attr("generation"), generationName, ""),
		MinChips:   Get(e, s, b.Attr("min_chips"), chips, 0),
		MaxChips:   Get(e, s, b.Attr("max_chips"), chips, 0),
		Zones:      Get(e, s, b.Attr("zones"), as.StringList, nil),
	}
	e.WarnOfZones(b.Attr("zones"), query.Zones)
	if query.Provider == schema.ProviderGCP {
		root := e.Root()
		for _, b := range root.Decls.Providers[schema.ProviderGCP].Children("offer") {
			query.Offers = append(query.Offers, root.Offer(b))
		}
	}
	if e.Options.Data == nil {
		return unknownData(language.DataAccelerators), nil
	}
	offers, err := e.Options.Data.Accelerators(query)
	if err != nil {
		return cty.NilVal, err
	}
	types := make([]string, 0, len(offers))
	vals := make([]cty.Value, 0, len(offers))
	for i := range offers {
		types = append(types, offers[i].Type)
		vals = append(vals, offerValue(&offers[i]))
	}
	list := cty.ListValEmpty(configs.OfferType())
	if len(vals) > 0 {
		list = cty.ListVal(vals)
	}
	return cty.ObjectVal(map[string]cty.Value{"types": stringValues(types), "offers": list}), nil
}

func offerValue(o *accelerators.Offer) cty.Value {
	number := func(n int) cty.Value { return cty.NumberIntVal(int64(n)) }
	zones := make([]cty.Value, 0, len(o.Zones))
	for _, z := range o.Zones {
		zones = append(zones, cty.ObjectVal(map[string]cty.Value{
			"zone": cty.StringVal(z.Zone), "per_chip_hour": cty.NumberFloatVal(z.OnDemand), "spot_per_chip_hour": cty.NumberFloatVal(z.Spot),
			"per_hour": cty.NumberFloatVal(z.OnDemand * float64(o.Chips)), "spot_per_hour": cty.NumberFloatVal(z.Spot * float64(o.Chips)),
		}))
	}
	list := cty.ListValEmpty(configs.OfferType().AttributeType("zones").ElementType())
	if len(zones) > 0 {
		list = cty.ListVal(zones)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"type": cty.StringVal(o.Type), "generation": cty.StringVal(o.Generation), "chips": number(o.Chips), "hosts": number(o.Hosts),
		"chips_per_host": number(o.ChipsPerHost), "topology": cty.StringVal(o.Topology), "zones": list,
	})
}

// unknownData is what data of a kind is before it can be read.
func unknownData(kind language.DataKind) cty.Value {
	switch kind {
	case language.DataOutputs:
		return cty.ObjectVal(map[string]cty.Value{"values": cty.DynamicVal})
	case language.DataReservation:
		return cty.UnknownVal(configs.ReservationDataType())
	case language.DataAccelerators:
		return cty.UnknownVal(configs.AcceleratorsType())
	}
	return cty.DynamicVal
}

// generationName decodes the name of a TPU generation.
func generationName(v cty.Value) (string, error) {
	name, err := as.NotEmpty(v)
	if err != nil {
		return "", err
	}
	if name == "v5e" {
		return "v5litepod", nil
	}
	names := accelerators.GenerationNames()
	if slices.Contains(names, name) {
		return name, nil
	}
	return "", fmt.Errorf("there is no TPU generation %q. %s", name, diagnose.DidYouMean(name, names))
}

// BucketName converts the name of a bucket.
func BucketName(v cty.Value) (string, error) {
	s, err := as.NotEmpty(v)
	if err == nil && strings.Contains(s, "/") {
		return "", errors.New("want the name of a bucket without gs:// and without a path; the path is the prefix")
	}
	return s, err
}
