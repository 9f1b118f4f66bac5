package check

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// layer4 is a protocol with ports, as firewall rules and policies have it: "22",
// "8000-9000"; no port: all of them.
type layer4 struct {
	Protocol string   `json:"IPProtocol"`
	Ports    []string `json:"ports"`
}

// firewallRule is a rule of a network (docs.cloud.google.com/firewall/docs/firewalls).
type firewallRule struct {
	Name           string   `json:"name"`
	Direction      string   `json:"direction"`
	Priority       *int     `json:"priority"`
	Disabled       bool     `json:"disabled"`
	SourceRanges   []string `json:"sourceRanges"`
	SourceTags     []string `json:"sourceTags"`
	SourceAccounts []string `json:"sourceServiceAccounts"`
	TargetTags     []string `json:"targetTags"`
	TargetAccounts []string `json:"targetServiceAccounts"`
	Allowed        []layer4 `json:"allowed"`
	Denied         []layer4 `json:"denied"`
}

// policyRule is a rule of a firewall policy of the network, a folder or the organization.
type policyRule struct {
	Direction string `json:"direction"`
	Disabled  bool   `json:"disabled"`
	Action    string `json:"action"`
	Match     struct {
		SourceRanges []string `json:"srcIpRanges"`
		Layer4       []struct {
			Protocol string   `json:"ipProtocol"`
			Ports    []string `json:"ports"`
		} `json:"layer4Configs"`
	} `json:"match"`
}

// effectiveFirewalls are all rules that hold in a network.
type effectiveFirewalls struct {
	Firewalls []firewallRule `json:"firewalls"`
	Policies  []struct {
		Rules []policyRule `json:"rules"`
	} `json:"firewallPolicys"`
}

// hostsInNetwork are machines that reach each other, or not.
type hostsInNetwork struct {
	subnet  netip.Prefix // the zero one: not known
	tags    []string
	account string // "": the project's default one, whose name is not known here
}

// blocked returns the TCP ports that the hosts do not reach of each other, and the rule
// that denies the first of them, "" if merely none allows it. Whatever may allow a port counts as allowing it:
// ranges that are compared with an unknown subnetwork, unknown accounts, and policies,
// of which only what they allow is read.
func (f *effectiveFirewalls) blocked(hosts hostsInNetwork, ports []int) (blocked []int, by string) {
	rules := slices.DeleteFunc(slices.Clone(f.Firewalls), func(r firewallRule) bool { return !r.appliesTo(hosts) })
	slices.SortStableFunc(rules, func(a, b firewallRule) int {
		return cmp.Or(cmp.Compare(a.priority(), b.priority()), cmp.Compare(len(b.Denied), len(a.Denied)))
	})
	for _, port := range ports {
		i := slices.IndexFunc(rules, func(r firewallRule) bool { return covers(r.Allowed, port) || covers(r.Denied, port) })
		if i >= 0 && covers(rules[i].Allowed, port) && !covers(rules[i].Denied, port) || f.policyAllows(hosts, port) {
			continue
		}
		if i >= 0 && len(blocked) == 0 {
			by = rules[i].Name
		}
		blocked = append(blocked, port)
	}
	return blocked, by
}

func (r *firewallRule) priority() int {
	const builtIn = 1000
	if r.Priority == nil {
		return builtIn
	}
	return *r.Priority
}

// appliesTo reports whether a rule is for packets from one of the hosts to another.
func (r *firewallRule) appliesTo(hosts hostsInNetwork) bool {
	if r.Disabled || r.Direction == "EGRESS" {
		return false
	}
	deny := len(r.Denied) > 0
	targeted := len(r.TargetTags)+len(r.TargetAccounts) == 0 || intersect(r.TargetTags, hosts.tags) || hosts.mayBe(r.TargetAccounts, deny)
	from := intersect(r.SourceTags, hosts.tags) || hosts.mayBe(r.SourceAccounts, deny) || hosts.mayBeIn(r.SourceRanges, deny) ||
		len(r.SourceRanges)+len(r.SourceTags)+len(r.SourceAccounts) == 0
	return targeted && from
}

// mayBe reports whether the hosts' account is one of those. Where that is not known, they
// may be allowed and are not denied.
func (h hostsInNetwork) mayBe(accounts []string, deny bool) bool {
	if h.account == "" {
		return len(accounts) > 0 && !deny
	}
	return slices.Contains(accounts, h.account)
}

// mayBeIn is mayBe of ranges of addresses.
func (h hostsInNetwork) mayBeIn(ranges []string, deny bool) bool {
	return slices.ContainsFunc(ranges, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return false
		case prefix.Bits() == 0:
			return prefix.Addr().Is4()
		case !h.subnet.IsValid():
			return !deny
		}
		return prefix.Overlaps(h.subnet) && (prefix.Bits() <= h.subnet.Bits() || !deny)
	})
}

func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// covers reports whether one of several protocols with ports has a port of TCP.
func covers(all []layer4, port int) bool {
	return slices.ContainsFunc(all, func(l layer4) bool {
		if l.Protocol != "all" && l.Protocol != "tcp" && l.Protocol != "6" {
			return false
		}
		return len(l.Ports) == 0 || slices.ContainsFunc(l.Ports, func(text string) bool {
			from, to, ranged := strings.Cut(text, "-")
			if !ranged {
				to = from
			}
			first, err := strconv.Atoi(from)
			last, lastErr := strconv.Atoi(to)
			return err == nil && lastErr == nil && first <= port && port <= last
		})
	})
}

func (f *effectiveFirewalls) policyAllows(hosts hostsInNetwork, port int) bool {
	for _, policy := range f.Policies {
		for _, r := range policy.Rules {
			if r.Disabled || r.Direction != "INGRESS" || r.Action != "allow" {
				continue
			}
			for _, l := range r.Match.Layer4 {
				open := covers([]layer4{{Protocol: l.Protocol, Ports: l.Ports}}, port)
				if open && (len(r.Match.SourceRanges) == 0 || hosts.mayBeIn(r.Match.SourceRanges, false)) {
					return true
				}
			}
		}
	}
	return false
}
