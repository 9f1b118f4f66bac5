package schema

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// DataKind is a closed set of what data blocks read.
type DataKind string

// The kinds of data.
const (
	DataOutputs      DataKind = "outputs"
	DataReservation  DataKind = "reservation"
	DataAccelerators DataKind = "accelerators"
)

// Reader reads what exists outside of the files. Its errors say what to do.
type Reader interface {
	Outputs(of StackRef) (map[string]DataOutput, error)
	Reservation(of StackRef, name string) (ReservationData, error)
	Accelerators(AcceleratorQuery) ([]Offer, error)
}

// StackRef names a stack by where its state is. The zero StackRef, but for the
// workspace, is the stack that is evaluated.
type StackRef struct {
	Path      string // absolute directory of a state kept there
	Bucket    string // of a state in a bucket
	Prefix    string // in the bucket
	Workspace string // "" is the default one
}

// DataOutput is an output as a stack recorded it.
type DataOutput struct {
	JSON      []byte
	Sensitive bool
}

// ReservationData is a reservation as it is.
type ReservationData struct {
	Provider    ProviderName
	Shape       Capacity // of one slice; Slices is what is held at least
	Max         int      // slices
	Preemptible bool
	Slices      []string // names of those that are up
	Allocated   int      // slices that jobs have
}

// AcceleratorQuery chooses among what a provider offers; what is zero does not.
type AcceleratorQuery struct {
	Provider   ProviderName
	Generation string
	MinChips   int
	MaxChips   int
	Zones      []string
	Offers     []Market // of the provider, in place of the built-in table
}

// Offer is a TPU type of a provider.
type Offer struct {
	Accelerator
	Zones []PricedZone
}

// PricedZone is where an offer holds, and what an hour of one chip is estimated
// to cost there in US dollars at least, on demand and preemptible; 0 is not
// known, or free.
type PricedZone struct {
	Zone     string
	OnDemand float64
	Spot     float64
}

// read gives a data block its value, one for each instance.
func (e *evaluator) read(name string) {
	decl := e.decls.data[name]
	if !e.expand(decl) {
		e.failed[symbol{root: rootData, name: name}] = true
		return
	}
	kind := DataKind(decl.block.typ.variant)
	_, overridden := e.override(decl)
	waits := e.waitsFor(e.dependsOn(decl.block)) && !overridden
	vals := make([]cty.Value, 0, len(decl.instances))
	byKey := make(map[string]cty.Value, len(decl.instances))
	for _, i := range decl.instances {
		val := unknownData(kind)
		if !waits {
			var ok bool
			if val, ok = e.readOne(decl, kind, scope(i.values())); !ok {
				e.failed[symbol{root: rootData, name: name}] = true
				return
			}
		}
		key, _ := i.key.Str()
		vals, byKey[key] = append(vals, val), val
	}
	switch decl.repetition {
	case single:
		e.data[name] = vals[0]
	case counted:
		e.data[name] = cty.TupleVal(vals)
	case keyed:
		e.data[name] = cty.ObjectVal(byKey)
	}
}

// waitsFor reports whether something of what is waited for is not there yet.
func (e *evaluator) waitsFor(addrs []Address) bool {
	for _, addr := range addrs {
		of, decl := e.declared(addr)
		if decl.addr.Kind == KindJobGroup {
			for _, job := range decl.jobs {
				if of.waitsFor([]Address{of.global(job.addr)}) {
					return true
				}
			}
		}
		for _, i := range decl.instances {
			if !addr.Key.IsZero() && i.key != addr.Key || decl.addr.Kind == KindJobGroup {
				continue
			}
			c := e.opts.Computed[of.global(i.addr(decl.addr))]
			if c.Status != JobSucceeded && (c.Status != JobRunning || len(c.Addresses) == 0) {
				return true
			}
		}
	}
	return false
}

// readOne reads for one instance. What is not known yet gives what is not known
// yet; what cannot be read is an error, but for the data of a check.
func (e *evaluator) readOne(decl *declaration, kind DataKind, s scope) (cty.Value, bool) {
	if o, ok := e.override(decl); ok {
		return e.overridden(kind, o)
	}
	b := decl.block
	known := true
	b.walk(func(x *expression) {
		if x.mode == modeValue {
			out := e.eval(x, s)
			known = known && out.ok && out.val.IsWhollyKnown()
		}
	})
	if !known {
		return unknownData(kind), true
	}
	before := len(e.diags)
	var val cty.Value
	var err error
	switch kind {
	case DataOutputs:
		val, err = e.readOutputs(b, s)
	case DataReservation:
		val, err = e.readReservation(b, s)
	case DataAccelerators:
		val, err = e.readAccelerators(b, s)
	}
	if err == nil {
		return val, len(e.diags) == before
	}
	d := errorAt(b.rng(), "Data cannot be read", sentence(err.Error()))
	if decl.check != "" {
		d.Severity = hcl.DiagWarning
	}
	e.add(d)
	return unknownData(kind), decl.check != ""
}

func (e *evaluator) stackRef(b *block, s scope) (StackRef, error) {
	ref := StackRef{
		Path:      get(e, s, b.attr("path"), notEmpty, ""),
		Bucket:    get(e, s, b.attr("bucket"), bucketName, ""),
		Prefix:    get(e, s, b.attr("prefix"), asString, ""),
		Workspace: get(e, s, b.attr("workspace"), notEmpty, ""),
	}
	if ref.Path != "" && ref.Bucket != "" {
		return ref, errors.New("a state is in a directory (path) or in a bucket: remove one of the two")
	}
	if ref.Path != "" {
		ref.Path = e.absolute(ref.Path)
	}
	return ref, nil
}

func (e *evaluator) readOutputs(b *block, s scope) (cty.Value, error) {
	ref, err := e.stackRef(b, s)
	if err != nil {
		return cty.NilVal, err
	}
	vals := e.defaultOutputs(b.attr("defaults"), s)
	if e.opts.Data == nil {
		return unknownData(DataOutputs), nil
	}
	outputs, err := e.opts.Data.Outputs(ref)
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
			val = markSensitive(val)
		}
		vals[name] = val
	}
	return cty.ObjectVal(map[string]cty.Value{"values": cty.ObjectVal(vals)}), nil
}

func (e *evaluator) defaultOutputs(x *expression, s scope) map[string]cty.Value {
	vals := map[string]cty.Value{}
	if x == nil {
		return vals
	}
	out := e.eval(x, s)
	switch ty := out.val.Type(); {
	case !out.ok || out.val.IsNull():
	case !ty.IsObjectType() && !ty.IsMapType():
		e.wrongValue(x, out, fmt.Errorf("want a map such as { queue = \"none\" }, this is %s", friendly(out.val)))
	default:
		maps.Copy(vals, out.val.AsValueMap())
	}
	return vals
}

func reservationDataType() cty.Type {
	return cty.Object(map[string]cty.Type{
		"name": cty.String, "provider": cty.String, "tpu": cty.String, "cpu": cty.Number, "memory": cty.Number,
		"preemptible": cty.Bool, "min": cty.Number, "max": cty.Number,
		"slices": cty.List(cty.String), "allocated": cty.Number, "free": cty.Number,
	})
}

func (e *evaluator) readReservation(b *block, s scope) (cty.Value, error) {
	ref, err := e.stackRef(b, s)
	if err != nil {
		return cty.NilVal, err
	}
	name := get(e, s, b.attr("name"), notEmpty, b.name)
	if e.opts.Data == nil {
		return unknownData(DataReservation), nil
	}
	r, err := e.opts.Data.Reservation(ref, name)
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

func offerType() cty.Type {
	return cty.Object(map[string]cty.Type{
		"type": cty.String, "generation": cty.String, "chips": cty.Number, "hosts": cty.Number,
		"chips_per_host": cty.Number, "topology": cty.String,
		"zones": cty.List(cty.Object(map[string]cty.Type{
			"zone": cty.String, "per_hour": cty.Number, "spot_per_hour": cty.Number,
			"per_chip_hour": cty.Number, "spot_per_chip_hour": cty.Number,
		})),
	})
}

func acceleratorsType() cty.Type {
	return cty.Object(map[string]cty.Type{"types": cty.List(cty.String), "offers": cty.List(offerType())})
}

func (e *evaluator) readAccelerators(b *block, s scope) (cty.Value, error) {
	chips := wholeNumber(1, math.MaxInt32)
	query := AcceleratorQuery{
		Provider:   get(e, s, b.attr("provider"), oneOf(ProviderLocal, ProviderGCP), e.impliedProvider()),
		Generation: get(e, s, b.attr("generation"), generationName, ""),
		MinChips:   get(e, s, b.attr("min_chips"), chips, 0),
		MaxChips:   get(e, s, b.attr("max_chips"), chips, 0),
		Zones:      get(e, s, b.attr("zones"), stringList, nil),
	}
	e.warnOfZones(b.attr("zones"), query.Zones)
	if query.Provider == ProviderGCP {
		root := e.root()
		for _, b := range root.decls.providers[ProviderGCP].children("offer") {
			query.Offers = append(query.Offers, root.offer(b))
		}
	}
	if e.opts.Data == nil {
		return unknownData(DataAccelerators), nil
	}
	offers, err := e.opts.Data.Accelerators(query)
	if err != nil {
		return cty.NilVal, err
	}
	types := make([]string, 0, len(offers))
	vals := make([]cty.Value, 0, len(offers))
	for i := range offers {
		types = append(types, offers[i].Type)
		vals = append(vals, offerValue(&offers[i]))
	}
	list := cty.ListValEmpty(offerType())
	if len(vals) > 0 {
		list = cty.ListVal(vals)
	}
	return cty.ObjectVal(map[string]cty.Value{"types": stringValues(types), "offers": list}), nil
}

func offerValue(o *Offer) cty.Value {
	number := func(n int) cty.Value { return cty.NumberIntVal(int64(n)) }
	zones := make([]cty.Value, 0, len(o.Zones))
	for _, z := range o.Zones {
		zones = append(zones, cty.ObjectVal(map[string]cty.Value{
			"zone": cty.StringVal(z.Zone), "per_chip_hour": cty.NumberFloatVal(z.OnDemand), "spot_per_chip_hour": cty.NumberFloatVal(z.Spot),
			"per_hour": cty.NumberFloatVal(z.OnDemand * float64(o.Chips)), "spot_per_hour": cty.NumberFloatVal(z.Spot * float64(o.Chips)),
		}))
	}
	list := cty.ListValEmpty(offerType().AttributeType("zones").ElementType())
	if len(zones) > 0 {
		list = cty.ListVal(zones)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"type": cty.StringVal(o.Type), "generation": cty.StringVal(o.Generation), "chips": number(o.Chips), "hosts": number(o.Hosts),
		"chips_per_host": number(o.ChipsPerHost), "topology": cty.StringVal(o.Topology), "zones": list,
	})
}

// unknownData is what data of a kind is before it can be read.
func unknownData(kind DataKind) cty.Value {
	switch kind {
	case DataOutputs:
		return cty.ObjectVal(map[string]cty.Value{"values": cty.DynamicVal})
	case DataReservation:
		return cty.UnknownVal(reservationDataType())
	case DataAccelerators:
		return cty.UnknownVal(acceleratorsType())
	}
	return cty.DynamicVal
}

// dataAttributes are what a reference to data of a kind can ask for.
func dataAttributes(kind DataKind) []string {
	switch kind {
	case DataOutputs:
		return []string{"values"}
	case DataReservation:
		return sortedKeys(reservationDataType().AttributeTypes())
	case DataAccelerators:
		return sortedKeys(acceleratorsType().AttributeTypes())
	}
	return nil
}

// generationName decodes the name of a TPU generation.
func generationName(v cty.Value) (string, error) {
	name, err := notEmpty(v)
	if err != nil {
		return "", err
	}
	if name == "v5e" {
		return "v5litepod", nil
	}
	var names []string
	for _, g := range generations() {
		names = append(names, g.name)
		if g.name == name {
			return name, nil
		}
	}
	return "", fmt.Errorf("there is no TPU generation %q. %s", name, didYouMean(name, names))
}
