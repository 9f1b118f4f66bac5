package compute

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

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
		item := listItem{scope: "zones/" + g.Zone, name: instance.GetName(), message: instance}
		if encoded, err := protojson.Marshal(instance); err == nil {
			item.encoded = json.RawMessage(encoded)
		}
		made.items = append(made.items, item)
	}
	s.mu.Lock()
	s.rendered[g.Key] = made
	s.mu.Unlock()
	return made.items
}

// showInstance is one machine of a group as the API shows it.
func showInstance(g *cloud.Group, worker int, status string) *computepb.Instance {
	detail, _ := g.Detail.(*machineDetail)
	scope := "projects/" + g.Project + "/zones/" + g.Zone
	name := g.Name
	if g.Kind == cloud.KindGroup {
		name = g.Hosts[worker].Instance
	}
	v := proto.CloneOf(detail.of(name))
	v.Kind, v.Name, v.Status, v.Params = new("compute#instance"), &name, &status, nil
	v.Id = new(machineID(g, worker))
	v.Zone = new(linkRoot + scope)
	v.SelfLink = new(linkRoot + scope + "/instances/" + name)
	v.MachineType = new(linkRoot + scope + "/machineTypes/" + lastPart(v.GetMachineType()))
	v.GuestAccelerators = showCards(v, scope)
	v.CreationTimestamp = new(timestamp(g.Created))
	v.LabelFingerprint = new(labelFingerprint(v.GetLabels()))
	v.Metadata = showMetadata(metadataOf(v.GetMetadata()))
	if detail.owner != 0 {
		v.Metadata.Items = append(v.Metadata.Items, &computepb.Items{
			Key: new("created-by"), Value: new(scope + "/instanceGroupManagers/" + g.Name),
		})
	}
	v.Tags = showTags(v.GetTags())
	v.Scheduling = showScheduling(v.GetScheduling())
	showNetwork(v, g, worker)
	if !g.Ready.IsZero() {
		v.LastStartTimestamp = new(timestamp(g.Ready))
	}
	if !g.Ended.IsZero() {
		v.LastStopTimestamp = new(timestamp(g.Ended))
	}
	if g.Cause == cloud.CausePreempted {
		v.StatusMessage = new("Instance was preempted.")
	}
	v.Fingerprint = new(fingerprint(v.GetSelfLink(), status, v.GetLabelFingerprint(), v.GetMetadata().GetFingerprint()))
	return v
}

// machineID is a number unique for ever.
func machineID(g *cloud.Group, worker int) uint64 {
	const workers = 1 << 12
	return 1<<61 + uint64(g.ID)*workers + uint64(worker)
}

func showMetadata(values map[string]string) *computepb.Metadata {
	m := &computepb.Metadata{Kind: new("compute#metadata")}
	parts := []string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		m.Items = append(m.Items, &computepb.Items{Key: new(key), Value: new(values[key])})
		parts = append(parts, key, values[key])
	}
	m.Fingerprint = new(fingerprint(parts...))
	return m
}

func showTags(tags *computepb.Tags) *computepb.Tags {
	items := slices.Clone(tags.GetItems())
	return &computepb.Tags{Items: items, Fingerprint: new(fingerprint(items...))}
}

func showScheduling(asked *computepb.Scheduling) *computepb.Scheduling {
	v := &computepb.Scheduling{}
	if asked != nil {
		v = proto.CloneOf(asked)
	}
	if v.ProvisioningModel == nil {
		v.ProvisioningModel = new("STANDARD")
	}
	spot := v.GetProvisioningModel() == "SPOT"
	v.Preemptible = new(spot || v.GetPreemptible())
	if v.AutomaticRestart == nil {
		v.AutomaticRestart = new(v.GetProvisioningModel() == "STANDARD")
	}
	if v.OnHostMaintenance == nil {
		v.OnHostMaintenance = new(map[bool]string{true: "TERMINATE", false: "MIGRATE"}[spot])
	}
	if v.InstanceTerminationAction == nil && spot {
		v.InstanceTerminationAction = new("STOP")
	}
	return v
}

func showNetwork(v *computepb.Instance, g *cloud.Group, worker int) {
	for i, network := range v.GetNetworkInterfaces() {
		network.Name = new("nic" + string(rune('0'+i)))
		network.Fingerprint = new(fingerprint(network.GetNetwork(), network.GetSubnetwork()))
		var host cloud.Host
		if worker < len(g.Hosts) {
			host = g.Hosts[worker]
		}
		if host.Address != "" {
			network.NetworkIP = new(host.Address)
		}
		for _, access := range network.GetAccessConfigs() {
			if host.External != "" {
				access.NatIP = new(host.External)
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
