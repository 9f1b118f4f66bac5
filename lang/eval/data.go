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

// read gives a data block its value.
func (e *Evaluator) read(name string) {
	val, ok := e.readData(e.Decls.Data[name])
	if !ok {
		e.failed[configs.Symbol{Root: configs.RootData, Name: name}] = true
		return
	}
	e.data[name] = val
}

// readData is the value of a data block: one, or one for each of its instances.
func (e *Evaluator) readData(decl *configs.Declaration) (cty.Value, bool) {
	if !e.expand(decl) {
		return cty.NilVal, false
	}
	override, overridden := e.Options.Overrides[overrideName(e.Module, decl.Block)]
	kind := language.DataKind(decl.Block.Type.Variant)
	waits := e.waitsFor(e.DependsOn(decl.Block)) && !overridden
	vals := make([]cty.Value, 0, len(decl.Instances))
	byKey := make(map[string]cty.Value, len(decl.Instances))
	for _, i := range decl.Instances {
		val, ok := unknownData(kind), true
		switch {
		case waits:
		case overridden:
			val, ok = override.value(e.Reporter, kind)
		default:
			val, ok = dataSource{in: e, decl: decl, kind: kind, instance: RepetitionData(i.Values())}.value()
		}
		if !ok {
			return cty.NilVal, false
		}
		key, _ := i.Key.Str()
		vals, byKey[key] = append(vals, val), val
	}
	switch decl.Repetition {
	case configs.Counted:
		return cty.TupleVal(vals), true
	case configs.Keyed:
		return cty.ObjectVal(byKey), true
	case configs.Single:
	}
	return vals[0], true
}

// waitsFor reports whether something of what is waited for is not there yet.
func (s *Session) waitsFor(addrs []schema.Address) bool {
	for _, addr := range addrs {
		of, decl := s.Declared(addr)
		if decl.Addr.Kind == schema.KindJobGroup {
			for _, member := range decl.Members {
				if configs.Runs(member.Addr.Kind) && s.waitsFor([]schema.Address{of.Global(member.Addr)}) {
					return true
				}
			}
		}
		for _, i := range decl.Instances {
			if !addr.Key.IsZero() && i.Key != addr.Key || decl.Addr.Kind == schema.KindJobGroup {
				continue
			}
			c := s.Options.Computed[of.Global(i.Addr(decl.Addr))]
			if c.Status != schema.JobSucceeded && (c.Status != schema.JobRunning || len(c.Addresses) == 0) {
				return true
			}
		}
	}
	return false
}

// dataSource reads the data of one instance of a data block.
type dataSource struct {
	in       *Evaluator
	decl     *configs.Declaration
	kind     language.DataKind
	instance RepetitionData
}

// value reads the data. What is not known yet gives what is not known
// yet; what cannot be read is an error, but for the data of a check.
func (d dataSource) value() (cty.Value, bool) {
	e, b := d.in, d.decl.Block
	known := true
	b.Walk(func(x *configs.Expression) {
		if x.Mode == language.ModeValue {
			out := e.Eval(x, d.instance)
			known = known && out.OK && out.Value.IsWhollyKnown()
		}
	})
	if !known {
		return unknownData(d.kind), true
	}
	before := len(e.Diags)
	var val cty.Value
	var err error
	switch d.kind {
	case language.DataOutputs:
		val, err = d.outputs()
	case language.DataReservation:
		val, err = d.reservation()
	case language.DataAccelerators:
		val, err = d.accelerators()
	}
	if err == nil {
		return val, len(e.Diags) == before
	}
	diagnostic := diagnose.ErrorAt(b.Range(), "Data cannot be read", diagnose.Sentence(err.Error()))
	if d.decl.Check != "" {
		diagnostic.Severity = hcl.DiagWarning
	}
	e.Add(diagnostic)
	return unknownData(d.kind), d.decl.Check != ""
}

func (d dataSource) stackRef() (StackRef, error) {
	e, b := d.in, d.decl.Block
	ref := StackRef{
		Path:      Get(e, d.instance, b.Attr("path"), as.NotEmpty, ""),
		Bucket:    Get(e, d.instance, b.Attr("bucket"), BucketName, ""),
		Prefix:    Get(e, d.instance, b.Attr("prefix"), as.String, ""),
		Workspace: Get(e, d.instance, b.Attr("workspace"), as.NotEmpty, ""),
	}
	if ref.Path != "" && ref.Bucket != "" {
		return ref, errors.New("a state is in a directory (path) or in a bucket: remove one of the two")
	}
	if ref.Path != "" {
		ref.Path = e.Absolute(ref.Path)
	}
	return ref, nil
}

func (d dataSource) outputs() (cty.Value, error) {
	e, b := d.in, d.decl.Block
	ref, err := d.stackRef()
	if err != nil {
		return cty.NilVal, err
	}
	vals := d.defaultOutputs(b.Attr("defaults"))
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

func (d dataSource) defaultOutputs(x *configs.Expression) map[string]cty.Value {
	vals := map[string]cty.Value{}
	if x == nil {
		return vals
	}
	out := d.in.Eval(x, d.instance)
	switch ty := out.Value.Type(); {
	case !out.OK || out.Value.IsNull():
	case !ty.IsObjectType() && !ty.IsMapType():
		d.in.WrongValue(x, out, fmt.Errorf("want a map such as { queue = \"none\" }, this is %s", diagnose.Friendly(out.Value)))
	default:
		maps.Copy(vals, out.Value.AsValueMap())
	}
	return vals
}

func (d dataSource) reservation() (cty.Value, error) {
	e, b := d.in, d.decl.Block
	ref, err := d.stackRef()
	if err != nil {
		return cty.NilVal, err
	}
	name := Get(e, d.instance, b.Attr("name"), as.NotEmpty, b.Name)
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
		"gpu": cty.StringVal(r.Shape.GPU.Kind()),
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

func (d dataSource) accelerators() (cty.Value, error) {
	e, b := d.in, d.decl.Block
	chips := as.WholeNumber(1, math.MaxInt32)
	query := accelerators.Query{
		Provider:   Get(e, d.instance, b.Attr("provider"), as.OneOf(schema.ProviderNames()...), e.ImpliedProvider()),
		Generation: Get(e, d.instance, b.Attr("generation"), generationName, ""),
		MinChips:   Get(e, d.instance, b.Attr("min_chips"), chips, 0),
		MaxChips:   Get(e, d.instance, b.Attr("max_chips"), chips, 0),
		Zones:      Get(e, d.instance, b.Attr("zones"), as.StringList, nil),
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
