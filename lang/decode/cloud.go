package decode

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// What is a default of the cloud's engines.
const defaultMaxRun = schema.Duration(24 * time.Hour)

// gcpProvider decodes the provider block of Google Cloud; the zero Provider
// where there is none.
func (e *Decoder) gcpProvider() schema.Provider {
	b := e.Decls.Providers[schema.ProviderGCP]
	p := schema.Provider{Name: schema.ProviderGCP}
	if b == nil {
		return p
	}
	p.Project = eval.Get(e, nil, b.Attr("project"), as.NotEmpty, "")
	p.Zones = eval.Get(e, nil, b.Attr("zones"), as.StringList, nil)
	e.WarnOfZones(b.Attr("zones"), p.Zones)
	e.cloud(nil, b, &p.Cloud)
	labels := eval.Get(e, nil, b.Attr("labels"), cloudLabels, nil)
	p.Cloud.Live.Labels = schema.JoinLabels(labels)
	for _, offer := range b.Children("offer") {
		p.Offers = append(p.Offers, e.Offer(offer))
	}
	slices.SortStableFunc(p.Offers, func(a, b schema.Market) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// cloudLabels converts labels that are put on what is created.
func cloudLabels(v cty.Value) (map[string]string, error) {
	labels, err := as.StringMap(v)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := schema.CheckCloudLabel(key, labels[key]); err != nil {
			return nil, err
		}
	}
	return labels, nil
}

// cloud decodes a block's attributes of slices on Google Cloud over what is
// there already.
func (e *Decoder) cloud(s eval.RepetitionData, b *configs.Block, into *schema.CloudSpec) {
	into.Engine = eval.Get(e, s, b.Attr("engine"), as.OneOf(schema.EngineTPU, schema.EngineGCE), into.Engine)
	into.Provisioning = eval.Get(e, s, b.Attr("provisioning"), as.OneOf(schema.ProvisioningQueued, schema.ProvisioningReserved, schema.ProvisioningFlexStart), into.Provisioning)
	into.ValidUntil = eval.Get(e, s, b.Attr("valid_until"), as.PositiveDuration, into.ValidUntil)
	into.MaxRun = eval.Get(e, s, b.Attr("max_run"), as.PositiveDuration, into.MaxRun)
	into.ReservedIn = eval.Get(e, s, b.Attr("reserved_in"), as.NotEmpty, into.ReservedIn)
	into.RuntimeVersion = eval.Get(e, s, b.Attr("runtime_version"), as.NotEmpty, into.RuntimeVersion)
	into.Image = eval.Get(e, s, b.Attr("boot_image"), as.NotEmpty, into.Image)
	into.Network = eval.Get(e, s, b.Attr("network"), as.NotEmpty, into.Network)
	into.Subnetwork = eval.Get(e, s, b.Attr("subnetwork"), as.NotEmpty, into.Subnetwork)
	into.ServiceAccount = eval.Get(e, s, b.Attr("service_account"), as.NotEmpty, into.ServiceAccount)
	if disks, stated := eval.Lookup(e, s, b.Attr("disks"), diskList, nil); stated {
		into.Disks = strings.Join(disks, ",")
	}
	if tags, stated := eval.Lookup(e, s, b.Attr("tags"), tagList, nil); stated {
		into.Live.Tags = strings.Join(tags, ",")
	}
	if external, stated := eval.Lookup(e, s, b.Attr("external_ips"), as.Bool, true); stated {
		into.Live.InternalIPs = !external
	}
}

// tagList converts network tags, which Compute Engine names as it does machines.
func tagList(v cty.Value) ([]string, error) {
	tags, err := as.StringList(v)
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		if err := schema.CheckNetworkTag(tag); err != nil {
			return nil, err
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

func diskList(v cty.Value) ([]string, error) {
	disks, err := as.StringList(v)
	if err != nil {
		return nil, err
	}
	for _, disk := range disks {
		name, mode, moded := strings.Cut(disk, ":")
		if name == "" || strings.Contains(disk, ",") || moded && mode != "ro" {
			return nil, fmt.Errorf("%q is no disk: write the name of one that exists in the zone, with :ro after it to attach it for reading only", disk)
		}
	}
	return disks, nil
}

// settleAlternatives is settleCloud for each alternative of a job.
func settleAlternatives(r eval.Reporter, b *configs.Block, c *schema.CloudSpec, on *schema.Resources) {
	declared, all := *c, on.Alternatives()
	hasTPU := slices.ContainsFunc(all, func(a schema.Accelerator) bool { return a.TPU() != "" })
	for i, a := range all {
		settled := declared
		tpu := a.TPU()
		checked := b
		if x := b.Attr("runtime_version"); x != nil && hasTPU && tpu == "" { // of its other alternatives
			without := *b
			without.Attrs = maps.Clone(b.Attrs)
			delete(without.Attrs, "runtime_version")
			checked = &without
		}
		settleCloud(r, checked, &settled, tpu)
		if i == 0 || settled.Engine != "" {
			*c = settled
		}
	}
}

// settleCloud checks a block's attributes of slices, and fills in what follows.
func settleCloud(r eval.Reporter, b *configs.Block, c *schema.CloudSpec, tpu string) {
	checkCloud(r, b, c, tpu)
	if c.Provisioning == schema.ProvisioningFlexStart && tpu != "" {
		c.Engine = schema.EngineGCE // the TPU API has none
	}
	if c.Provisioning == schema.ProvisioningFlexStart && c.MaxRun == 0 {
		c.MaxRun = defaultMaxRun
	}
}

// checkCloud reports attributes that exclude or need each other.
func checkCloud(r eval.Reporter, b *configs.Block, c *schema.CloudSpec, tpu string) {
	for _, unfit := range []struct {
		name, detail string
		is           bool
	}{
		{"valid_until", "Only a request that waits can be valid for a time: write provisioning = \"queued\", or remove valid_until.",
			c.Provisioning != schema.ProvisioningQueued && c.Provisioning != schema.ProvisioningFlexStart},
		{"max_run", "Only flex-start slices end by themselves: write provisioning = \"flex-start\", or remove max_run. An attempt is ended by the job's timeout.",
			c.Provisioning != schema.ProvisioningFlexStart},
		{"reserved_in", "Write provisioning = \"reserved\" to draw from a reservation, or remove reserved_in.",
			c.Provisioning != schema.ProvisioningReserved},
		{"runtime_version", "Only TPU nodes have a runtime version: choose the software of a machine with boot_image.", tpu == ""},
	} {
		if x := b.Attr(unfit.name); x != nil && unfit.is {
			r.ErrorAt(x.Range, "Attribute without use", unfit.detail)
		}
	}
	shape, err := accelerators.Parse(tpu)
	tpuOnly := err == nil && !shape.IsOnComputeEngine()
	made := strings.Join(accelerators.ComputeEngineGenerations(), ", ")
	switch {
	case tpuOnly && c.Engine == schema.EngineGCE:
		wrongEngine(r, b, fmt.Sprintf("Compute Engine makes TPUs of %s only: write engine = \"tpu\" for %s, or another tpu.", made, tpu))
	case tpuOnly && c.Provisioning == schema.ProvisioningFlexStart:
		wrongEngine(r, b, fmt.Sprintf("Only Compute Engine has flex-start, for TPUs of %s: write provisioning = \"queued\" for %s, or another tpu.", made, tpu))
	case tpu == "" && c.Engine == schema.EngineTPU:
		wrongEngine(r, b, "The TPU API makes TPU nodes only: add tpu, or remove engine.")
	case strings.HasPrefix(tpu, "tpu7x-") && c.Engine == schema.EngineTPU:
		wrongEngine(r, b, "The TPU API does not serve TPU7x: write engine = \"gce\", or remove engine.")
	case c.Provisioning == schema.ProvisioningFlexStart && c.Engine == schema.EngineTPU:
		wrongEngine(r, b, "The TPU API has no flex-start: write engine = \"gce\", or provisioning = \"queued\".")
	case c.Provisioning == schema.ProvisioningQueued && (c.Engine == schema.EngineGCE || tpu == ""):
		wrongEngine(r, b, "Compute Engine has no queue: write provisioning = \"flex-start\", or engine = \"tpu\" for a TPU.")
	}
}

// wrongEngine points at the attribute that chose the engine.
func wrongEngine(r eval.Reporter, b *configs.Block, detail string) {
	rng := b.Range()
	for _, name := range []string{"provisioning", "engine"} {
		if x := b.Attr(name); x != nil {
			rng = x.Range
		}
	}
	r.ErrorAt(rng, "Engine cannot do this", detail)
}

// cloudNames are the attributes of slices that only Google Cloud has.
func cloudNames() []string {
	var names []string
	for _, a := range slices.Concat(language.SliceAttributes(), language.CloudAttributes(language.TheProviders)) {
		names = append(names, a.Name)
	}
	return names
}
