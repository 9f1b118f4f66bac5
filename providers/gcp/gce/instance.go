package gce

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/machinetype"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// machineProperties are what the instances of a slice are made with, as an
// instance template has them.
func (g *api) machineProperties(r engine.Order) (*computeapi.InstanceProperties, error) {
	kind, err := machinetype.Of(r.Spec)
	if err != nil {
		return nil, invalid(err)
	}
	scheduling, err := machineScheduling(r.Spec)
	if err != nil {
		return nil, invalid(err)
	}
	return &computeapi.InstanceProperties{
		Labels:              mark.Labels(r.Spec),
		MachineType:         kind,
		GuestAccelerators:   attachedGPUs(r.Spec),
		Metadata:            metadataItems(withDriver(r.Metadata, r.Spec)),
		Disks:               g.machineDisks(r.Spec),
		NetworkInterfaces:   []computeapi.NetworkInterface{g.machineNetwork(r.Spec)},
		Scheduling:          scheduling,
		ReservationAffinity: reservationAffinity(r.Spec),
		ServiceAccounts: []computeapi.ServiceAccount{{
			Email: cmp.Or(r.Spec.Cloud.ServiceAccount, "default"),
			// Roles bound it, scopes would only hide which one is missing.
			Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"},
		}},
		Tags: computeapi.Tags{Items: mark.SplitList(r.Spec.Cloud.Live.Tags)},
	}, nil
}

// instance is the one machine of a slice of one host.
func (g *api) instance(r engine.Order) (*computeapi.Instance, error) {
	p, err := g.machineProperties(r)
	if err != nil {
		return nil, err
	}
	zone := "zones/" + r.Spec.Zone + "/"
	machine := &computeapi.Instance{Name: r.Spec.Name, InstanceProperties: *p}
	machine.MachineType = zone + "machineTypes/" + p.MachineType
	for i := range machine.GuestAccelerators { // templates name types without a zone, too
		card := &machine.GuestAccelerators[i]
		card.AcceleratorType = zone + "acceleratorTypes/" + card.AcceleratorType
	}
	for _, disk := range machine.Disks { // templates name types without a zone
		if start := disk.InitializeParams; start != nil && start.DiskType != "" {
			start.DiskType = zone + "diskTypes/" + start.DiskType
		}
	}
	if r.Spec.Cloud.Provisioning == schema.ProvisioningFlexStart && r.Spec.Cloud.ValidUntil > 0 {
		machine.Params = computeapi.InstanceParams{RequestValidForDuration: seconds(r.Spec.Cloud.ValidUntil)}
	}
	return machine, nil
}

// template is what the machines of a slice of several hosts are made from.
func (g *api) template(r engine.Order) (*computeapi.InstanceTemplate, error) {
	p, err := g.machineProperties(r)
	if err != nil {
		return nil, err
	}
	return &computeapi.InstanceTemplate{Name: r.Spec.Name, Description: groupDescription(r.Spec), Properties: *p}, nil
}

// workloadPolicy makes the machines of a group one TPU slice: those of one block
// whose chips are wired in this topology.
func workloadPolicy(spec schema.SliceSpec, topology string) *computeapi.ResourcePolicy {
	return &computeapi.ResourcePolicy{
		Name:        spec.Name,
		Description: groupDescription(spec),
		WorkloadPolicy: &computeapi.WorkloadPolicy{
			Type: "HIGH_THROUGHPUT", AcceleratorTopology: topology, AcceleratorTopologyMode: "AUTO_CONNECT",
		},
	}
}

// group is the managed instance group of a slice of several hosts.
func (g *api) group(spec schema.SliceSpec) *computeapi.InstanceGroupManager {
	group := &computeapi.InstanceGroupManager{
		Name:             spec.Name,
		Description:      groupDescription(spec),
		BaseInstanceName: baseName(spec.Name),
		InstanceTemplate: g.templatePath(spec.Name),
		TargetSize:       new(int32(spec.Hosts)),
		// A machine that is lost takes the slice with it: who made the slice
		// makes all of it anew, maybe elsewhere.
		InstanceLifecyclePolicy: computeapi.LifecyclePolicy{DefaultActionOnFailure: "DO_NOTHING"},
		// What is changed of the group must not restart its machines.
		UpdatePolicy: computeapi.UpdatePolicy{Type: "OPPORTUNISTIC"},
	}
	if byResize(spec) {
		group.TargetSize = new(int32(0))
	}
	if topologyOf(spec) != "" {
		group.TargetSizePolicy = computeapi.TargetSizePolicy{Mode: "BULK"}
		group.ResourcePolicies = computeapi.GroupResourcePolicies{WorkloadPolicy: g.policyPath(spec)}
	}
	return group
}

// resize asks for all machines of a flex-start group at once, whenever there is
// capacity for them.
func resize(spec schema.SliceSpec) *computeapi.ResizeRequest {
	request := &computeapi.ResizeRequest{Name: spec.Name, ResizeBy: int32(spec.Hosts)}
	if spec.Cloud.MaxRun > 0 {
		request.RequestedRunDuration = seconds(spec.Cloud.MaxRun)
	}
	return request
}

// byResize says of a slice of several hosts that its machines are asked for once
// its group is there.
func byResize(spec schema.SliceSpec) bool {
	return spec.Cloud.Provisioning == schema.ProvisioningFlexStart
}

// machineScheduling returns how a slice's machines get capacity and lose it.
//
// A spot machine of its own is stopped, not deleted, when it is preempted: what is
// stopped can still be listed as preempted, what is deleted is merely gone. It
// costs its disk until it is deleted. Those of a group are deleted, since the
// group remains to show it. So are flex-start ones, which may not be stopped.
func machineScheduling(spec schema.SliceSpec) (computeapi.Scheduling, error) {
	s := computeapi.Scheduling{ProvisioningModel: "STANDARD"}
	gpus, hasGPUs := machinetype.GPUs(spec)
	if spec.TPU != "" || hasGPUs {
		s.OnHostMaintenance = "TERMINATE" // a machine with accelerators cannot move
	}
	ends := func(model, action string) {
		s.ProvisioningModel, s.InstanceTerminationAction = model, action
		s.OnHostMaintenance, s.AutomaticRestart = "TERMINATE", new(false)
	}
	switch spec.Cloud.Provisioning {
	case "":
		switch {
		case spec.Preemptible && spec.Hosts == 1:
			ends("SPOT", "STOP")
		case spec.Preemptible:
			ends("SPOT", "DELETE")
		}
	case schema.ProvisioningReserved:
		if !hasGPUs || gpus.ReservationBound { // others are standard machines that take a reservation
			ends("RESERVATION_BOUND", "DELETE")
		}
	case schema.ProvisioningFlexStart:
		if spec.Cloud.MaxRun <= 0 {
			return s, fmt.Errorf("flex-start needs max_run, how long the slice runs at most")
		}
		ends("FLEX_START", "DELETE")
		s.MaxRunDuration = seconds(spec.Cloud.MaxRun)
	case schema.ProvisioningQueued:
		return s, fmt.Errorf("no queue on Compute Engine; use flex-start, or engine = \"tpu\"")
	default:
		return s, fmt.Errorf("there is no provisioning %q on Compute Engine", spec.Cloud.Provisioning)
	}
	return s, nil
}

// reservationAffinity returns which of the project's reservations a slice draws from.
func reservationAffinity(spec schema.SliceSpec) computeapi.ReservationAffinity {
	switch {
	case spec.Cloud.Provisioning == schema.ProvisioningFlexStart:
		return computeapi.ReservationAffinity{ConsumeReservationType: "NO_RESERVATION"}
	case spec.Cloud.Provisioning != schema.ProvisioningReserved:
		return computeapi.ReservationAffinity{} // the service's choice
	case spec.Cloud.ReservedIn == "":
		return computeapi.ReservationAffinity{ConsumeReservationType: "ANY_RESERVATION"}
	}
	return computeapi.ReservationAffinity{
		ConsumeReservationType: "SPECIFIC_RESERVATION",
		Key:                    "compute.googleapis.com/reservation-name",
		Values:                 []string{spec.Cloud.ReservedIn},
	}
}

// machineDisks are a boot disk of the machine's own and the existing ones.
func (g *api) machineDisks(spec schema.SliceSpec) []computeapi.AttachedDisk {
	size, diskType := machinetype.BootDisk(spec)
	boot := &computeapi.DiskParams{SourceImage: machinetype.BootImage(spec), DiskSizeGB: size}
	if diskType != "" {
		boot.DiskType = diskType
	}
	disks := []computeapi.AttachedDisk{{Boot: true, AutoDelete: true, InitializeParams: boot}}
	for _, each := range mark.SplitList(spec.Cloud.Disks) {
		name, mode, _ := strings.Cut(each, ":")
		disk := computeapi.AttachedDisk{
			Source: g.inProject(name, "zones/"+spec.Zone+"/disks/"), DeviceName: path.Base(name),
			Mode: "READ_WRITE",
		}
		if mode == "ro" {
			disk.Mode = "READ_ONLY"
		}
		disks = append(disks, disk)
	}
	return disks
}

func (g *api) machineNetwork(spec schema.SliceSpec) computeapi.NetworkInterface {
	network := computeapi.NetworkInterface{}
	if spec.Cloud.Network != "" || spec.Cloud.Subnetwork == "" {
		network.Network = g.inProject(cmp.Or(spec.Cloud.Network, "default"), "global/networks/")
	}
	if spec.Cloud.Subnetwork != "" {
		network.Subnetwork = g.inProject(spec.Cloud.Subnetwork, "regions/"+accelerators.RegionOf(spec.Zone)+"/subnetworks/")
	}
	if gpus, ok := machinetype.GPUs(spec); ok && machinetype.NeedsGVNIC(gpus) {
		network.NICType = "GVNIC"
	}
	if !spec.Cloud.Live.InternalIPs {
		network.AccessConfigs = []computeapi.AccessConfig{externalAccess()}
	}
	return network
}

// externalAccess gives a machine an address that can be reached from outside.
func externalAccess() computeapi.AccessConfig {
	return computeapi.AccessConfig{Name: "External NAT", Type: "ONE_TO_ONE_NAT"}
}

func metadataItems(values map[string]string) computeapi.Metadata {
	m := computeapi.Metadata{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		m.Items = append(m.Items, computeapi.MetadataItem{Key: key, Value: values[key]})
	}
	return m
}

// inProject is the path of what a user names in short, or what they wrote.
func (g *api) inProject(name, folder string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "projects/" + g.project + "/" + folder + name
}

func (g *api) templatePath(name string) string {
	return "projects/" + g.project + "/global/instanceTemplates/" + name
}

// policyPath is a whole one: groups take no shorter.
func (g *api) policyPath(spec schema.SliceSpec) string {
	return "https://www.googleapis.com/compute/v1/projects/" + g.project +
		"/regions/" + accelerators.RegionOf(spec.Zone) + "/resourcePolicies/" + spec.Name
}

// topologyOf is the wiring of a TPU slice of several hosts, "" of any other.
func topologyOf(spec schema.SliceSpec) string {
	shape, err := accelerators.Parse(spec.TPU)
	if err != nil || spec.Hosts == 1 {
		return ""
	}
	return shape.Topology
}

// baseName is what the names of a group's machines begin with: the service adds
// five characters.
func baseName(name string) string {
	const longest = 58
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}

// groupDescription marks the parts of a group, of which only the template has
// labels, and none a zone.
func groupDescription(spec schema.SliceSpec) string {
	return "part of fray slice " + spec.Name + " of stack " + spec.Stack + " in " + spec.Zone
}

// describedZone is the zone that groupDescription wrote.
func describedZone(description string) string {
	return description[strings.LastIndexByte(description, ' ')+1:]
}

func seconds(d schema.Duration) computeapi.Duration {
	return computeapi.Duration{Seconds: int64(time.Duration(d) / time.Second)}
}
