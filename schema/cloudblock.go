package schema

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// What is a default of the cloud's engines.
const defaultMaxRun = Duration(24 * time.Hour)

// gcpProvider decodes the provider block of Google Cloud; the zero Provider
// where there is none.
func (e *evaluator) gcpProvider() Provider {
	b := e.decls.providers[ProviderGCP]
	p := Provider{Name: ProviderGCP}
	if b == nil {
		return p
	}
	p.Project = get(e, nil, b.attr("project"), notEmpty, "")
	p.Zones = get(e, nil, b.attr("zones"), stringList, nil)
	e.warnOfZones(b.attr("zones"), p.Zones)
	e.cloud(nil, b, &p.Cloud)
	labels := get(e, nil, b.attr("labels"), cloudLabels, nil)
	p.Cloud.Live.Labels = JoinLabels(labels)
	for _, offer := range b.children("offer") {
		p.Offers = append(p.Offers, e.offer(offer))
	}
	slices.SortStableFunc(p.Offers, func(a, b Market) int { return strings.Compare(a.Name, b.Name) })
	return p
}

func (e *evaluator) offer(b *block) Market {
	m := Market{
		Name:     b.name,
		Zones:    get(e, nil, b.attr("zones"), stringList, nil),
		Engine:   get(e, nil, b.attr("engine"), oneOf(EngineTPU, EngineGCE), ""),
		OnDemand: get(e, nil, b.attr("on_demand"), asPrice, 0),
		Spot:     get(e, nil, b.attr("spot"), asPrice, 0),
	}
	if m.Name == "v5e" {
		m.Name = "v5litepod"
	}
	isGeneration := slices.ContainsFunc(generations(), func(g generation) bool { return g.name == m.Name })
	if !isGeneration && !strings.Contains(m.Name, "-") {
		names := make([]string, 0, len(generations()))
		for _, g := range generations() {
			names = append(names, g.name)
		}
		e.errorAt(b.rng(), "Unknown offer", strings.TrimSpace(fmt.Sprintf("%q is neither a TPU generation (%s) nor a machine type such as \"n2-standard-8\". %s",
			m.Name, strings.Join(names, ", "), didYouMean(m.Name, names))))
	}
	return m
}

// asPrice converts an amount of US dollars.
func asPrice(v cty.Value) (float64, error) {
	n, err := asFloat(v)
	if err != nil || n.Cmp(new(big.Float)) < 0 || n.Cmp(big.NewFloat(1e6)) > 0 {
		return 0, fmt.Errorf("want a price in US dollars such as 1.20, this is %s", friendly(v))
	}
	f, _ := n.Float64()
	return f, nil
}

// cloudLabels converts labels that are put on what is created.
func cloudLabels(v cty.Value) (map[string]string, error) {
	labels, err := stringMap(v)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := CheckCloudLabel(key, labels[key]); err != nil {
			return nil, err
		}
	}
	return labels, nil
}

// cloud decodes what a block says of its slices on Google Cloud over what is
// there already.
func (e *evaluator) cloud(s scope, b *block, into *CloudSpec) {
	into.Engine = get(e, s, b.attr("engine"), oneOf(EngineTPU, EngineGCE), into.Engine)
	into.Provisioning = get(e, s, b.attr("provisioning"), oneOf(ProvisioningQueued, ProvisioningReserved, ProvisioningFlexStart), into.Provisioning)
	into.ValidUntil = get(e, s, b.attr("valid_until"), positiveDuration, into.ValidUntil)
	into.MaxRun = get(e, s, b.attr("max_run"), positiveDuration, into.MaxRun)
	into.ReservedIn = get(e, s, b.attr("reserved_in"), notEmpty, into.ReservedIn)
	into.RuntimeVersion = get(e, s, b.attr("runtime_version"), notEmpty, into.RuntimeVersion)
	into.Image = get(e, s, b.attr("boot_image"), notEmpty, into.Image)
	into.Network = get(e, s, b.attr("network"), notEmpty, into.Network)
	into.Subnetwork = get(e, s, b.attr("subnetwork"), notEmpty, into.Subnetwork)
	into.ServiceAccount = get(e, s, b.attr("service_account"), notEmpty, into.ServiceAccount)
	if disks, stated := lookup(e, s, b.attr("disks"), diskList, nil); stated {
		into.Disks = strings.Join(disks, ",")
	}
	if tags, stated := lookup(e, s, b.attr("tags"), tagList, nil); stated {
		into.Live.Tags = strings.Join(tags, ",")
	}
	if external, stated := lookup(e, s, b.attr("external_ips"), asBool, true); stated {
		into.Live.InternalIPs = !external
	}
}

// tagList converts network tags, which Compute Engine names as it does machines.
func tagList(v cty.Value) ([]string, error) {
	tags, err := stringList(v)
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		if len(tag) > maxCloudLabel || tag == "" || tag[0] < 'a' || tag[0] > 'z' || strings.Contains(tag, "_") || notOfLabels(tag) != "" {
			return nil, fmt.Errorf("%q is no network tag: write a lower-case letter, then at most 62 of a-z, 0-9 and -", tag)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

func diskList(v cty.Value) ([]string, error) {
	disks, err := stringList(v)
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

// settleCloud checks what a block says of its slices, and fills in what follows.
func (e *evaluator) settleCloud(b *block, c *CloudSpec, tpu string) {
	e.checkCloud(b, c, tpu)
	if c.Provisioning == ProvisioningFlexStart && c.MaxRun == 0 {
		c.MaxRun = defaultMaxRun
	}
}

// checkCloud reports attributes that exclude or need each other.
func (e *evaluator) checkCloud(b *block, c *CloudSpec, tpu string) {
	for _, unfit := range []struct {
		name, detail string
		is           bool
	}{
		{"valid_until", "Only a request that waits can be valid for a time: write provisioning = \"queued\", or remove valid_until.",
			c.Provisioning != ProvisioningQueued && c.Provisioning != ProvisioningFlexStart},
		{"max_run", "Only flex-start slices end by themselves: write provisioning = \"flex-start\", or remove max_run. An attempt is ended by the job's timeout.",
			c.Provisioning != ProvisioningFlexStart},
		{"reserved_in", "Write provisioning = \"reserved\" to draw from a reservation, or remove reserved_in.",
			c.Provisioning != ProvisioningReserved},
		{"runtime_version", "Only TPU nodes have a runtime version: choose the software of a machine with boot_image.", tpu == ""},
	} {
		if x := b.attr(unfit.name); x != nil && unfit.is {
			e.errorAt(x.rng, "Attribute without use", unfit.detail)
		}
	}
	switch {
	case tpu == "" && c.Engine == EngineTPU:
		e.wrongEngine(b, "The TPU API makes TPU nodes only: add tpu, or remove engine.")
	case strings.HasPrefix(tpu, "tpu7x-") && c.Engine == EngineTPU:
		e.wrongEngine(b, "The TPU API does not serve TPU7x: write engine = \"gce\", or remove engine.")
	case c.Provisioning == ProvisioningFlexStart && c.Engine == EngineTPU:
		e.wrongEngine(b, "The TPU API has no flex-start: write engine = \"gce\", or provisioning = \"queued\".")
	case c.Provisioning == ProvisioningQueued && (c.Engine == EngineGCE || tpu == ""):
		e.wrongEngine(b, "Compute Engine has no queue: write provisioning = \"flex-start\", or engine = \"tpu\" for a TPU.")
	}
}

// wrongEngine points at the attribute that chose the engine.
func (e *evaluator) wrongEngine(b *block, detail string) {
	rng := b.rng()
	for _, name := range []string{"provisioning", "engine"} {
		if x := b.attr(name); x != nil {
			rng = x.rng
		}
	}
	e.errorAt(rng, "Engine cannot do this", detail)
}

// cloudNames are the attributes of slices that only Google Cloud has.
func cloudNames() []string {
	var names []string
	for _, a := range slices.Concat(sliceAttributes(), cloudAttributes(theProviders)) {
		names = append(names, a.name)
	}
	return names
}

// JoinLabels writes labels as CloudLive holds them.
func JoinLabels(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// LabelMap reads what JoinLabels wrote; it is not nil.
func (c CloudLive) LabelMap() map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(c.Labels, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[key] = value
		}
	}
	return labels
}

// TagList are the network tags, nil for none.
func (c CloudLive) TagList() []string {
	if c.Tags == "" {
		return nil
	}
	return strings.Split(c.Tags, ",")
}
