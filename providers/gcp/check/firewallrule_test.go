package check

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"
)

// TestBlocked: rules as the service answers them. Whatever is not known for sure counts as
// allowed.
func TestBlocked(t *testing.T) {
	hosts := hostsInNetwork{subnet: netip.MustParsePrefix("10.0.0.0/20"), tags: []string{"train"}, account: "robot@acme"}
	unknown := hostsInNetwork{}
	for _, test := range []struct {
		name  string
		hosts hostsInNetwork
		rules string // of getEffectiveFirewalls
		want  []int  // of 22 and 8476
		by    string
	}{
		{"no rules", hosts, `{}`, []int{22, 8476}, ""},
		{"the default network's", hosts, `{"firewalls":[{"name":"default-allow-internal","direction":"INGRESS","priority":65534,
			"sourceRanges":["10.0.0.0/9"],"allowed":[{"IPProtocol":"tcp","ports":["0-65535"]},{"IPProtocol":"icmp"}]}]}`, nil, ""},
		{"only SSH", hosts, `{"firewalls":[{"direction":"INGRESS","sourceRanges":["0.0.0.0/0"],"allowed":[{"IPProtocol":"tcp","ports":["22"]}]}]}`, []int{8476}, ""},
		{"another subnetwork's", hosts, `{"firewalls":[{"direction":"INGRESS","sourceRanges":["192.168.0.0/16"],"allowed":[{"IPProtocol":"all"}]}]}`, []int{22, 8476}, ""},
		{"an unknown subnetwork", unknown, `{"firewalls":[{"direction":"INGRESS","sourceRanges":["192.168.0.0/16"],"allowed":[{"IPProtocol":"all"}]}]}`, nil, ""},
		{"UDP", hosts, `{"firewalls":[{"direction":"INGRESS","sourceRanges":["0.0.0.0/0"],"allowed":[{"IPProtocol":"udp"}]}]}`, []int{22, 8476}, ""},
		{"by tags", hosts, `{"firewalls":[{"direction":"INGRESS","sourceTags":["train"],"targetTags":["train"],"allowed":[{"IPProtocol":"6"}]}]}`, nil, ""},
		{"to other tags", hosts, `{"firewalls":[{"direction":"INGRESS","sourceRanges":["0.0.0.0/0"],"targetTags":["web"],"allowed":[{"IPProtocol":"tcp"}]}]}`, []int{22, 8476}, ""},
		{"by account", hosts, `{"firewalls":[{"direction":"INGRESS","sourceServiceAccounts":["robot@acme"],"targetServiceAccounts":["robot@acme"],"allowed":[{"IPProtocol":"tcp"}]}]}`, nil, ""},
		{"by another account", hosts, `{"firewalls":[{"direction":"INGRESS","sourceServiceAccounts":["web@acme"],"allowed":[{"IPProtocol":"tcp"}]}]}`, []int{22, 8476}, ""},
		{"by the default account maybe", unknown, `{"firewalls":[{"direction":"INGRESS","sourceServiceAccounts":["1-compute@developer"],"allowed":[{"IPProtocol":"tcp"}]}]}`, nil, ""},
		{"disabled", hosts, `{"firewalls":[{"direction":"INGRESS","disabled":true,"sourceRanges":["0.0.0.0/0"],"allowed":[{"IPProtocol":"tcp"}]}]}`, []int{22, 8476}, ""},
		{"outgoing", hosts, `{"firewalls":[{"direction":"EGRESS","allowed":[{"IPProtocol":"tcp"}]}]}`, []int{22, 8476}, ""},
		{"denied before", hosts, `{"firewalls":[{"direction":"INGRESS","priority":1000,"sourceRanges":["0.0.0.0/0"],"allowed":[{"IPProtocol":"all"}]},
			{"name":"no-jax","direction":"INGRESS","priority":900,"sourceRanges":["10.0.0.0/8"],"denied":[{"IPProtocol":"tcp","ports":["8000-9000"]}]}]}`, []int{8476}, "no-jax"},
		{"denied at the same priority", hosts, `{"firewalls":[{"direction":"INGRESS","sourceRanges":["0.0.0.0/0"],"allowed":[{"IPProtocol":"all"}]},
			{"name":"none","direction":"INGRESS","sourceRanges":["0.0.0.0/0"],"denied":[{"IPProtocol":"all"}]}]}`, []int{22, 8476}, "none"},
		{"denied after", hosts, `{"firewalls":[{"direction":"INGRESS","priority":100,"sourceRanges":["0.0.0.0/0"],"allowed":[{"IPProtocol":"all"}]},
			{"direction":"INGRESS","priority":65535,"sourceRanges":["0.0.0.0/0"],"denied":[{"IPProtocol":"all"}]}]}`, nil, ""},
		{"allowed by a policy", hosts, `{"firewallPolicys":[{"type":"NETWORK","rules":[{"direction":"INGRESS","action":"allow",
			"match":{"srcIpRanges":["10.0.0.0/8"],"layer4Configs":[{"ipProtocol":"tcp","ports":["8476"]}]}}]}]}`, []int{22}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rules effectiveFirewalls
			if err := json.Unmarshal([]byte(test.rules), &rules); err != nil {
				t.Fatal(err)
			}
			if got, by := rules.blocked(test.hosts, []int{22, 8476}); !slices.Equal(got, test.want) || by != test.by {
				t.Errorf("blocked are %v by %q, want %v by %q", got, by, test.want, test.by)
			}
		})
	}
}
