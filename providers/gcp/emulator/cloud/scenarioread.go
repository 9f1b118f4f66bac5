package cloud

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/schema"
)

// ReadScenario reads a scenario file. docs/guides/scenario.md describes the
// language. The diagnostics are of all mistakes.
func ReadScenario(path string) (Scenario, hcl.Diagnostics) {
	src, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Scenario cannot be read", Detail: fmt.Sprintf("%v.", err),
		}}
	}
	return ParseScenario(src, path)
}

// ParseScenario reads a scenario; name stands for the file in diagnostics.
func ParseScenario(src []byte, name string) (Scenario, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return Scenario{}, diags
	}
	d := &scenarioReader{diags: diags}
	s := d.scenario(file.Body)
	sort.SliceStable(s.Events, func(i, j int) bool { return s.Events[i].At < s.Events[j].At })
	return s, d.diags
}

// scenarioReader collects what is wrong.
type scenarioReader struct {
	diags hcl.Diagnostics
	zones []placed // names of zones used before it is known which there are
}

type placed struct {
	name string
	at   hcl.Range
}

func (d *scenarioReader) scenario(body hcl.Body) Scenario {
	var s Scenario
	fields := scenarioFields(&s)
	blocks := d.body(body, fields, []hcl.BlockHeaderSchema{
		{Type: "zone", LabelNames: []string{"name"}}, {Type: "network", LabelNames: []string{"name"}}, {Type: "quota"}, {Type: "stockout"}, {Type: "outage"},
		{Type: "at", LabelNames: []string{"time"}}, {Type: "workload", LabelNames: []string{"job"}}, // which is package rehearse's
	})
	for _, b := range blocks {
		switch b.Type {
		case "zone":
			d.zone(b, &s)
		case "network":
			s.NetworkRules = append(s.NetworkRules, d.network(b))
		case "quota":
			s.Quotas = append(s.Quotas, d.quota(b))
		case "stockout":
			s.Stockouts = append(s.Stockouts, d.window(b, true))
		case "outage":
			s.Outages = append(s.Outages, d.window(b, false))
		case "at":
			s.Events = append(s.Events, d.event(b)...)
		}
	}
	d.checkZones(newRules(s).zones)
	return s
}

// scenarioFields are the arguments at the top.
func scenarioFields(s *Scenario) []field {
	return slices.Concat([]field{
		{"seed", seedInto(&s.Seed)}, {"project", textInto(&s.Project)}, {"networks", textsInto(&s.Networks)},
		{"runtimes", textsInto(&s.Runtimes)}, {"create_limit", countInto(&s.CreateLimit, 1)}, {"page_size", countInto(&s.PageSize, 1)},
		{"latency", rangeInto(&s.API.Latency)}, {"failure_rate", rateInto(&s.API.FailureRate)},
		{"lost_replies", rateInto(&s.API.LostReplies)}, {"unreachable_rate", rateInto(&s.API.UnreachableRate)},
		{"list_fault_rate", rateInto(&s.API.ListFaultRate)},
		{"deny", textsInto(&s.API.Deny)}, {"disabled_apis", textsInto(&s.API.Disabled)},
		{"constraints", textsInto(&s.API.Constraints)}, {"unauthenticated", flagInto(&s.API.Unauthenticated)},
	}, conditionsFields(&s.Conditions))
}

// checkZones finds zones that neither the scenario nor the built-in table has.
func (d *scenarioReader) checkZones(known map[string]*zoneRules) {
	for _, z := range d.zones {
		if known[z.name] == nil {
			names := slices.Sorted(maps.Keys(known))
			d.wrong(z.at, "Unknown zone", fmt.Sprintf("There is no zone %q.%s A zone exists once it has a zone block.", z.name, meant(z.name, names)))
		}
	}
}

func (d *scenarioReader) zone(b *hcl.Block, s *Scenario) {
	z := Zone{Name: b.Labels[0]}
	if slices.ContainsFunc(s.Zones, func(other Zone) bool { return other.Name == z.Name }) {
		d.wrong(b.DefRange, "Zone stated twice", fmt.Sprintf("There is a zone block %q already; put everything into that one.", z.Name))
	}
	if RegionOf(z.Name) == z.Name {
		d.wrong(b.LabelRanges[0], "Bad zone name", fmt.Sprintf("%q is no zone: write it as \"us-west4-a\".", z.Name))
	}
	fields := append(conditionsFields(&z.Conditions), field{"capacity", capacityInto(&z.Capacity)}, field{"reserved", capacityInto(&z.Reserved)})
	for _, inner := range d.body(b.Body, fields, []hcl.BlockHeaderSchema{{Type: "type", LabelNames: []string{"name"}}}) {
		t := TypeConditions{Name: inner.Labels[0]}
		if err := checkType(t.Name); err != nil {
			d.wrong(inner.LabelRanges[0], "Unknown type", err.Error())
		}
		d.body(inner.Body, conditionsFields(&t.Conditions), nil)
		z.Types = append(z.Types, t)
	}
	s.Zones = append(s.Zones, z)
}

func (d *scenarioReader) network(b *hcl.Block) Network {
	n := Network{Name: b.Labels[0], Allow: []string{"all"}}
	access := true
	d.body(b.Body, []field{
		{"allow", textsInto(&n.Allow)}, {"nat", textsInto(&n.NAT)}, {"private_google_access", flagInto(&access)},
	}, nil)
	n.NoGoogleAccess = !access
	return n
}

func (d *scenarioReader) quota(b *hcl.Block) Quota {
	q, tier := Quota{}, ""
	d.required(b, "region", "type", "limit")
	d.body(b.Body, []field{
		{"region", textInto(&q.Region)}, {"type", quotaTypeInto(&q.Type)}, {"limit", countInto(&q.Limit, 0)},
		{"tier", oneOfInto(&tier, string(TierOnDemand), string(TierSpot), string(TierReserved))},
	}, nil)
	q.Tier = Tier(tier)
	return q
}

func (d *scenarioReader) window(b *hcl.Block, stockout bool) Window {
	var w Window
	fields := []field{{"zone", d.zoneInto(&w.Zone)}, {"from", durationInto(&w.From)}, {"to", durationInto(&w.To)}}
	if stockout {
		fields = append(fields, field{"type", typeInto(&w.Type)}, field{"preempt", flagInto(&w.Preempt)})
	}
	d.required(b, "zone")
	d.body(b.Body, fields, nil)
	if w.To != 0 && w.To <= w.From {
		d.wrong(b.DefRange, "Window without time", fmt.Sprintf("It ends at %s and begins at %s: to must be later than from.", w.To, w.From))
	}
	return w
}

// event reads what happens at one time: any number of actions, in a fixed order.
func (d *scenarioReader) event(b *hcl.Block) []Scripted {
	var at schema.Duration
	if err := at.UnmarshalText([]byte(b.Labels[0])); err != nil || at < 0 {
		d.wrong(b.LabelRanges[0], "Bad time", fmt.Sprintf("%q is no time since the start: write it as \"2h30m\".", b.Labels[0]))
	}
	common := Scripted{At: time.Duration(at)}
	var zone string
	targets := map[Action]*string{
		ActionPreempt: new(string), ActionKillHost: new(string), ActionMaintain: new(string), ActionStockout: new(string),
		ActionOutage: new(string), ActionList: new(string),
	}
	d.body(b.Body, []field{
		{"preempt", textInto(targets[ActionPreempt])}, {"kill_host", textInto(targets[ActionKillHost])},
		{"maintain", textInto(targets[ActionMaintain])}, {"stockout", d.zoneInto(targets[ActionStockout])},
		{"outage", d.zoneInto(targets[ActionOutage])}, {"zone", d.zoneInto(&zone)}, {"type", typeInto(&common.Type)},
		{"for", durationInto(&common.For)}, {"silent", flagInto(&common.Silent)},
		{"list", oneOfInto(targets[ActionList], listFaultNames()...)}, {"of", oneOfInto(&common.List, ListNames()...)},
		{"times", countInto(&common.Times, 1)},
	}, nil)
	var events []Scripted
	for _, action := range []Action{ActionStockout, ActionOutage, ActionList, ActionPreempt, ActionKillHost, ActionMaintain} {
		e := common
		e.Action, e.Target, e.Zone = action, *targets[action], zone
		if e.Target == "" {
			continue
		}
		if action == ActionStockout || action == ActionOutage {
			e.Zone, e.Target = e.Target, ""
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		d.wrong(b.DefRange, "Nothing happens", "State what does: preempt, kill_host or maintain with a name, stockout or outage with a zone, list with a fault.")
	}
	return events
}
