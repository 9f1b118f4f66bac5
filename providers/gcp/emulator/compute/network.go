package compute

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// oneFirewall is the rule of a network that lets its machines reach each other, as
// the service makes it for the default network; it has the network's name with
// "-allow-internal".
func (s *catalogs) oneFirewall(r *request) object {
	network := s.cloud.Network(strings.TrimSuffix(r.name, "-allow-internal"))
	if !s.cloud.HasNetwork(network.Name) || len(network.Allow) == 0 {
		return nil
	}
	rule := object{
		"kind": "compute#firewall", "name": network.Name + "-allow-internal", "network": link(r, "global/networks/"+network.Name),
		"selfLink":  link(r, "global/firewalls/"+network.Name+"-allow-internal"),
		"direction": "INGRESS", "priority": 65534, "sourceRanges": []string{networkRange},
	}
	var rules []object
	for _, each := range network.Allow {
		protocol, ports, ranged := strings.Cut(each, ":")
		allowed := object{"IPProtocol": protocol}
		if ranged {
			allowed["ports"] = strings.Split(ports, ",")
		}
		rules = append(rules, allowed)
	}
	rule["allowed"] = rules
	return rule
}

// firewalls are the names of the rules of the networks that are listed.
func (s *catalogs) firewalls(r *request) []string {
	var names []string
	for _, network := range s.networks(r) {
		names = append(names, network+"-allow-internal")
	}
	return names
}

// networkRange has the addresses of all machines: that of the networks that the
// service makes subnetworks of by itself.
const networkRange = "10.128.0.0/9"

// effectiveFirewalls are the rules that hold in a network.
func (s *catalogs) effectiveFirewalls(r *request) (any, error) {
	if !s.cloud.HasNetwork(r.name) {
		return nil, missing(r.resource())
	}
	response := object{}
	if rule := s.oneFirewall(r); rule != nil {
		response["firewalls"] = []object{rule}
	}
	return response, nil
}

// oneRouter is the router with the Cloud NAT of the network of its name.
func (s *catalogs) oneRouter(r *request) object {
	if !s.cloud.HasNetwork(r.name) || !slices.Contains(s.cloud.Network(r.name).NAT, r.region) {
		return nil
	}
	return object{
		"kind": "compute#router", "name": r.name, "network": link(r, "global/networks/"+r.name), "region": link(r, "regions/"+r.region),
		"selfLink": link(r, r.scope()+"/routers/"+r.name),
		"nats": []object{{
			"name": "nat", "natIpAllocateOption": "AUTO_ONLY", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
		}},
	}
}

// orgPolicy answers which value a constraint of the organization has for the project.
func (s *projects) orgPolicy(r *request) (any, error) {
	if !s.cloud.Permits("orgpolicy.policy.get") {
		return nil, &apiError{status: http.StatusForbidden, reason: "forbidden", message: "Permission 'orgpolicy.policy.get' denied on resource 'projects/" + r.project + "'."}
	}
	var asked struct{ Constraint string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, invalid("Invalid JSON payload received: %v", err)
	}
	policy := map[string]any{"constraint": asked.Constraint}
	if s.cloud.Constrained(strings.TrimPrefix(asked.Constraint, "constraints/")) {
		policy["booleanPolicy"] = map[string]any{"enforced": true}
	}
	return policy, nil
}

// quotaLimit is the name of a limit of TPUs and the type and tier that it is of.
type quotaLimit struct {
	name, kind string
	tier       cloud.Tier
}

// quotaLimits are the limits that the services count TPUs and GPUs in, by the names of the Cloud
// Quotas API; those of a zone are not modelled. Only on demand TPUs of Compute Engine
// are counted by family.
func quotaLimits() []quotaLimit {
	const family = "TPUS-PER-TPU-FAMILY-per-project-region"
	return []quotaLimit{
		{"TPUV5PPerProjectPerRegionForTPUAPI", "v5p", cloud.TierOnDemand},
		{"TPUV5PPreemptiblePerProjectPerRegionForTPUAPI", "v5p", cloud.TierSpot},
		{"TPUV6EPerProjectPerRegionForTPUAPI", "v6e", cloud.TierOnDemand},
		{"TPUV6EPreemptiblePerProjectPerRegionForTPUAPI", "v6e", cloud.TierSpot},
		{"TPU-V5P-per-project-region", "v5p", cloud.TierOnDemand},
		{"PREEMPTIBLE-TPU-V5P-per-project-region", "v5p", cloud.TierSpot},
		{"PREEMPTIBLE-TPU-V6E-per-project-region", "v6e", cloud.TierSpot},
		{family, "v6e", cloud.TierOnDemand}, {family, "tpu7x", cloud.TierOnDemand},
		{gpuFamilyLimit, "h100", cloud.TierOnDemand}, {gpuFamilyLimit, "h100-mega", cloud.TierOnDemand},
		{gpuFamilyLimit, "h200", cloud.TierOnDemand}, {gpuFamilyLimit, "b200", cloud.TierOnDemand}, {gpuFamilyLimit, "rtx-pro-6000", cloud.TierOnDemand},
	}
}

// gpuFamilyLimit is the limit of GPUs on demand that have none of their own.
const gpuFamilyLimit = "GPUS-PER-GPU-FAMILY-per-project-region"

// getQuotaInfo shows a limit by region: those of the scenario, and no limit elsewhere.
func (s *projects) getQuotaInfo(r *request) (any, error) {
	known := false
	infos := []any{}
	for _, q := range quotaLimits() {
		if q.name != r.name {
			continue
		}
		known = true
		for _, limit := range s.cloud.QuotasOf(q.kind) {
			if limit.Tier != "" && limit.Tier != q.tier {
				continue
			}
			dimensions := map[string]string{"region": limit.Region}
			if strings.HasPrefix(q.name, "TPUS-PER-TPU-FAMILY") {
				dimensions["tpu_family"] = familyName(q.kind)
			}
			if q.name == gpuFamilyLimit {
				dimensions["gpu_family"] = gpuFamily(q.kind)
			}
			infos = append(infos, quotaDimensions(dimensions, limit.Limit))
		}
	}
	if !known {
		return nil, missing("projects/" + r.project + "/locations/global/services/" + r.PathValue("service") + "/quotaInfos/" + r.name)
	}
	infos = append(infos, quotaDimensions(map[string]string{}, -1))
	return map[string]any{
		"name":            "projects/" + r.project + "/locations/global/services/" + r.PathValue("service") + "/quotaInfos/" + r.name,
		"quotaId":         r.name,
		"dimensionsInfos": infos,
	}, nil
}

// familyName is how the quotas of Compute Engine name a TPU generation.
func familyName(kind string) string {
	if kind == "v6e" {
		return "CT6E"
	}
	return strings.ToUpper(kind)
}

func quotaDimensions(dimensions map[string]string, limit int) map[string]any {
	text, _ := json.Marshal(limit) // numbers always encode
	return map[string]any{"dimensions": dimensions, "details": map[string]any{"value": string(text)}}
}
