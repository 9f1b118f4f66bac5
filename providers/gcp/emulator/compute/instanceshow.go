package compute

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// stoppingFor is how long a preempted machine shows STOPPING.
const stoppingFor = 10 * time.Second

// renderedGroup is what was made of a group's machines, for as long as the group
// is that one and shows that status.
type renderedGroup struct {
	of     *cloud.Group
	status string
	items  []listItem
}

// statusOfMachine is the status of all machines of a group.
func statusOfMachine(g *cloud.Group, now time.Time) string {
	switch g.Shown {
	case cloud.StateCreating, cloud.StateStarting:
		if len(g.Hosts) == 0 {
			return "PROVISIONING"
		}
		return "STAGING"
	case cloud.StateReady, cloud.StateRestarting, cloud.StateReimaging:
		return "RUNNING"
	case cloud.StateRepairing:
		return "REPAIRING"
	case cloud.StateStopping, cloud.StateDeleting, cloud.StateGone:
		return "STOPPING"
	case cloud.StatePreempted, cloud.StateTerminated, cloud.StateHiding, cloud.StateHidden, cloud.StateUnhiding, cloud.StateUnknown:
		if now.Sub(g.Ended) < stoppingFor {
			return "STOPPING"
		}
	case cloud.StateStopped:
	}
	return "TERMINATED"
}

// machines are a group's instances. A managed group has none before it has
// capacity.
func (s *instances) machines(g *cloud.Group) []listItem {
	status := statusOfMachine(g, s.cloud.Clock().Now())
	s.mu.Lock()
	known := s.rendered[g.Key]
	s.mu.Unlock()
	if known.of == g && known.status == status {
		return known.items
	}
	count := len(g.Hosts)
	if g.Kind == cloud.KindInstance {
		count = 1
	}
	made := renderedGroup{of: g, status: status}
	for i := range count {
		instance := showInstance(g, i, status)
		item := listItem{scope: "zones/" + g.Zone, name: instance.Name, message: instance}
		if encoded, err := json.Marshal(instance); err == nil {
			item.encoded = encoded
		}
		made.items = append(made.items, item)
	}
	s.mu.Lock()
	s.rendered[g.Key] = made
	s.mu.Unlock()
	return made.items
}

// showInstance is one machine of a group as the API shows it.
func showInstance(g *cloud.Group, worker int, status string) *computeapi.Instance {
	detail, _ := g.Detail.(*machineDetail)
	scope := "projects/" + g.Project + "/zones/" + g.Zone
	name := g.Name
	if g.Kind == cloud.KindGroup {
		name = g.Hosts[worker].Instance
	}
	v := copyInstance(detail.of(name))
	v.Kind, v.Name, v.Status, v.Params = "compute#instance", name, status, computeapi.InstanceParams{}
	v.ID = machineID(g, worker)
	v.Zone = linkRoot + scope
	v.SelfLink = linkRoot + scope + "/instances/" + name
	v.MachineType = linkRoot + scope + "/machineTypes/" + lastPart(v.MachineType)
	v.GuestAccelerators = showCards(v, scope)
	v.CreationTimestamp = timestamp(g.Created)
	v.LabelFingerprint = labelFingerprint(v.Labels)
	v.Metadata = showMetadata(metadataOf(v.Metadata))
	if detail.owner != 0 {
		v.Metadata.Items = append(v.Metadata.Items, computeapi.MetadataItem{
			Key: "created-by", Value: scope + "/instanceGroupManagers/" + g.Name,
		})
	}
	v.Tags = showTags(v.Tags)
	v.Scheduling = showScheduling(v.Scheduling)
	showNetwork(v, g, worker)
	if !g.Ready.IsZero() {
		v.LastStartTimestamp = timestamp(g.Ready)
	}
	if !g.Ended.IsZero() {
		v.LastStopTimestamp = timestamp(g.Ended)
	}
	if g.Cause == cloud.CausePreempted {
		v.StatusMessage = "Instance was preempted."
	}
	v.Fingerprint = fingerprint(v.SelfLink, status, v.LabelFingerprint, v.Metadata.Fingerprint)
	return v
}

// copyInstance is an instance whose network interfaces may be changed. The rest of it is
// shared, and only replaced as a whole.
func copyInstance(i *computeapi.Instance) *computeapi.Instance {
	copied := *i
	copied.NetworkInterfaces = slices.Clone(i.NetworkInterfaces)
	for n := range copied.NetworkInterfaces {
		network := &copied.NetworkInterfaces[n]
		network.AccessConfigs = slices.Clone(network.AccessConfigs)
	}
	return &copied
}

// machineID is a number unique for ever.
func machineID(g *cloud.Group, worker int) uint64 {
	const workers = 1 << 12
	return 1<<61 + uint64(g.ID)*workers + uint64(worker)
}

func showMetadata(values map[string]string) computeapi.Metadata {
	m := computeapi.Metadata{Kind: "compute#metadata"}
	parts := []string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		m.Items = append(m.Items, computeapi.MetadataItem{Key: key, Value: values[key]})
		parts = append(parts, key, values[key])
	}
	m.Fingerprint = fingerprint(parts...)
	return m
}

func showTags(tags computeapi.Tags) computeapi.Tags {
	items := slices.Clone(tags.Items)
	return computeapi.Tags{Items: items, Fingerprint: fingerprint(items...)}
}

func showScheduling(asked computeapi.Scheduling) computeapi.Scheduling {
	v := asked
	if v.ProvisioningModel == "" {
		v.ProvisioningModel = "STANDARD"
	}
	spot := v.ProvisioningModel == "SPOT"
	v.Preemptible = spot || v.Preemptible
	if v.AutomaticRestart == nil {
		v.AutomaticRestart = new(v.ProvisioningModel == "STANDARD")
	}
	if v.OnHostMaintenance == "" {
		v.OnHostMaintenance = map[bool]string{true: "TERMINATE", false: "MIGRATE"}[spot]
	}
	if v.InstanceTerminationAction == "" && spot {
		v.InstanceTerminationAction = "STOP"
	}
	return v
}

func showNetwork(v *computeapi.Instance, g *cloud.Group, worker int) {
	for i := range v.NetworkInterfaces {
		network := &v.NetworkInterfaces[i]
		network.Name = "nic" + string(rune('0'+i))
		network.Fingerprint = fingerprint(network.Network, network.Subnetwork)
		var host cloud.Host
		if worker < len(g.Hosts) {
			host = g.Hosts[worker]
		}
		if host.Address != "" {
			network.NetworkIP = host.Address
		}
		for n := range network.AccessConfigs {
			if host.External != "" {
				network.AccessConfigs[n].NatIP = host.External
			}
		}
	}
}

func labelFingerprint(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key, labels[key])
	}
	return fingerprint(parts...)
}
