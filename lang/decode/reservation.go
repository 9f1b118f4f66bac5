package decode

import (
	"cmp"
	"fmt"
	"math"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// Reservation decodes a pool. Its ends have one shape, stated in either.
func (e *Decoder) Reservation(decl *configs.Declaration) (schema.Reservation, bool) {
	before := len(e.Diags)
	b, ok := e.Expanded(decl.Block, nil)
	if !ok {
		return schema.Reservation{}, false
	}
	b = given(e, nil, b)
	r := schema.Reservation{
		Addr:     e.Global(decl.Addr),
		Provider: e.provider(nil, b.Attr("provider")),
		Priority: eval.Get(e, nil, b.Attr("priority"), as.WholeNumber(math.MinInt32, math.MaxInt32), 0),
		TTL:      eval.Get(e, nil, b.Attr("ttl"), as.Duration, 0),

		IdleTimeout: eval.Get(e, nil, b.Attr("idle_timeout"), as.PositiveDuration, 0),

		Lifecycle: e.lifecycle(decl),
	}
	if growth := eval.Get(e, nil, b.Attr("growth"), as.OneOf(schema.GrowthDemand, schema.GrowthOffer), schema.GrowthDemand); growth != schema.GrowthDemand {
		r.Growth = growth // the zero Growth is that on demand
	}
	if name, ok := e.referenceTo(nil, b.Attr("namespace"), schema.KindNamespace); ok {
		r.Namespace = name
	}
	preemptible, stated := eval.Lookup(e, nil, b.Attr("preemptible"), as.Bool, false)
	low, high := b.Child("min"), b.Child("max")
	places := e.poolPlaces(b, r.Provider)
	switch {
	case low == nil && high == nil:
		e.ErrorAt(b.Range(), "Empty block", "A reservation needs min { … } with the shape and number of its slices, and may have max { … }.")
		return r, false
	case high == nil:
		r.Min = e.capacity(low)
		r.Max = r.Min
	case low == nil:
		r.Max = e.capacity(high)
		r.Min = r.Max
		r.Min.Slices = 0
	default:
		r.Min, r.Max = e.capacity(low), e.capacity(high)
		checkEnds(e.Reporter, b, &r)
	}
	if r.Max.TPU == "" && r.Max.GPU.Count == 0 && r.Max.CPU == 0 {
		r.Min.CPU, r.Max.CPU = 1, 1
	}
	r.Preemptible = preemptible || !stated && (r.Max.TPU != "" || r.Max.GPU.Count > 0)
	e.settlePlaces(b, &r, places)
	return r, !e.Diags[before:].HasErrors()
}

// poolPlaces decodes where a pool's slices are and what they have there.
func (e *Decoder) poolPlaces(b *configs.Block, provider schema.ProviderName) schema.Resources {
	r := schema.Resources{Provider: provider}
	if provider == schema.ProviderGCP {
		r.Cloud = e.Whole.GCP.Cloud
	}
	r.Zones = eval.Get(e, nil, b.Attr("zones"), as.StringList, nil)
	r.Regions = eval.Get(e, nil, b.Attr("regions"), as.StringList, nil)
	e.WarnOfZones(b.Attr("zones"), r.Zones)
	e.WarnOfRegions(b.Attr("regions"), r.Regions)
	e.cloud(nil, b, &r.Cloud)
	return r
}

// settlePlaces gives a pool its places, once its shape is known.
func (e *Decoder) settlePlaces(b *configs.Block, r *schema.Reservation, places schema.Resources) {
	places.TPU, places.GPU = r.Max.TPU, r.Max.GPU
	e.checkShape(b, &places)
	if gpu := cmp.Or(b.Child("min").Child("gpu"), b.Child("max").Child("gpu")); gpu != nil && r.Provider == schema.ProviderGCP {
		checkGPUs(e.Reporter, gpu, places.GPU)
	}
	e.checkPlaced(b.Range(), b, &places)
	settleCloud(e.Reporter, b, &places.Cloud, places.TPU)
	if r.Provider == schema.ProviderGCP {
		r.Zones, r.Regions, r.Cloud = places.Zones, places.Regions, places.Cloud
	}
}

func (e *Decoder) capacity(b *configs.Block) schema.Capacity {
	c := schema.Capacity{
		TPU:    e.TPU(nil, b.Attr("tpu")),
		GPU:    e.GPU(nil, b.Child("gpu")),
		CPU:    eval.Get(e, nil, b.Attr("cpu"), as.Cores, 0),
		Memory: eval.Get(e, nil, b.Attr("memory"), as.Bytes, 0),
		Disk:   eval.Get(e, nil, b.Attr("disk"), as.Bytes, 0),
		Slices: eval.Get(e, nil, b.Attr("slices"), as.WholeNumber(0, 100_000), 1),
	}
	if c.TPU != "" {
		checkOneAccelerator(e.Reporter, b)
		for _, name := range []string{"cpu", "memory", "disk"} {
			if x := b.Attr(name); x != nil {
				e.ErrorAt(x.Range, "TPU and "+name, fmt.Sprintf("A TPU slice brings its own machines: remove %s, or remove tpu for machines without TPU.", name))
			}
		}
	}
	return c
}

// checkEnds settles the shape of a pool with both ends, and reports ends that
// do not fit together.
func checkEnds(report eval.Reporter, b *configs.Block, r *schema.Reservation) {
	shapeless := func(c schema.Capacity) bool {
		return c.TPU == "" && c.GPU == schema.GPU{} && c.CPU == 0 && c.Memory == 0 && c.Disk == 0
	}
	switch {
	case shapeless(r.Min):
		r.Min.TPU, r.Min.GPU, r.Min.CPU, r.Min.Memory, r.Min.Disk = r.Max.TPU, r.Max.GPU, r.Max.CPU, r.Max.Memory, r.Max.Disk
	case shapeless(r.Max):
		r.Max.TPU, r.Max.GPU, r.Max.CPU, r.Max.Memory, r.Max.Disk = r.Min.TPU, r.Min.GPU, r.Min.CPU, r.Min.Memory, r.Min.Disk
	case r.Min.TPU != r.Max.TPU || r.Min.GPU != r.Max.GPU || r.Min.CPU != r.Max.CPU || r.Min.Memory != r.Max.Memory || r.Min.Disk != r.Max.Disk:
		report.ErrorAt(b.Child("max").Range(), "Two shapes in one reservation", "All slices of a reservation have the shape of min: state the same in max, or leave it out there.")
	}
	if r.Min.Slices > r.Max.Slices {
		report.ErrorAt(b.Child("min").Range(), "Min larger than max", fmt.Sprintf("min asks for slices = %d, max allows %d. Lower one, or raise the other.", r.Min.Slices, r.Max.Slices))
	}
}
