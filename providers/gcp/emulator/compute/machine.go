package compute

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// machineKind is what a machine type draws from.
type machineKind struct {
	name  string
	kind  string // of capacity: a TPU generation, a type of GPUs or a machine family
	units int    // chips, GPUs or cores
	tpu   bool
	gpu   bool
}

// parseMachineType reads "ct5lp-hightpu-4t" or "n2-standard-8", alone or at the
// end of a link.
func parseMachineType(link string) (machineKind, bool) {
	m := machineKind{name: lastPart(link)}
	if with, ok := gpuMachineNamed(m.name); ok {
		m.kind, m.units, m.gpu = with.gpu, with.gpus, true
		return m, true
	}
	family, rest, ok := strings.Cut(m.name, "-")
	if !ok {
		return m, false
	}
	m.kind = family
	if generation, isTPU := map[string]string{
		"ct4p": "v4", "ct5lp": "v5litepod", "ct5p": "v5p", "ct6e": "v6e", "tpu7x": "tpu7x",
	}[family]; isTPU {
		m.kind, m.tpu = generation, true
	}
	if m.kind == "e2" && (rest == "micro" || rest == "small" || rest == "medium") {
		m.units = 2
		return m, true
	}
	size := regexp.MustCompile(`^(?:[a-z]+-)?(\d+)(?:[tg]|-\d+|-lssd|-metal)?$`).FindStringSubmatch(rest)
	if size == nil {
		return m, false
	}
	m.units, _ = strconv.Atoi(size[1]) // digits
	return m, m.units > 0
}

// acceleratorType is the TPU type of so many hosts with these chips, "" of a
// plain machine.
func (m machineKind) acceleratorType(hosts int) string {
	if !m.tpu {
		return ""
	}
	size := m.units * hosts
	if m.kind != "v5litepod" && m.kind != "v6e" {
		size *= 2 // its number counts cores
	}
	return m.kind + "-" + strconv.Itoa(size)
}

// tierOf is the claim on capacity that scheduling makes.
func tierOf(instance *computeapi.Instance) cloud.Tier {
	switch instance.Scheduling.ProvisioningModel {
	case "SPOT":
		return cloud.TierSpot
	case "RESERVATION_BOUND":
		return cloud.TierReserved
	}
	switch {
	case instance.Scheduling.Preemptible:
		return cloud.TierSpot
	case instance.ReservationAffinity.ConsumeReservationType == "SPECIFIC_RESERVATION":
		return cloud.TierReserved
	}
	return cloud.TierOnDemand
}

// machineDetail is what the API knows of the machines of a group of the model. It
// never changes, but is replaced.
type machineDetail struct {
	instance *computeapi.Instance // as asked for, one for all
	owner    uint64               // ID of the managed group that made them; 0: none did
	// changed are machines of a managed group that are no longer as the others.
	changed map[string]*computeapi.Instance
}

// of is what is asked of one machine.
func (d *machineDetail) of(name string) *computeapi.Instance {
	if changed := d.changed[name]; changed != nil {
		return changed
	}
	return d.instance
}

// with replaces what is asked of one machine.
func (d *machineDetail) with(name string, instance *computeapi.Instance) *machineDetail {
	if d.owner == 0 {
		return &machineDetail{instance: instance}
	}
	changed := maps.Clone(d.changed)
	if changed == nil {
		changed = map[string]*computeapi.Instance{}
	}
	changed[name] = instance
	return &machineDetail{instance: d.instance, owner: d.owner, changed: changed}
}

// spec is what the model is asked for.
func (s *instances) spec(key cloud.Key, detail *machineDetail, machines int, changed func(*cloud.Group)) cloud.Spec {
	kind := machineKindOf(detail.instance)
	scheduling := detail.instance.Scheduling
	spec := cloud.Spec{
		Key: key, Type: kind.kind, Units: kind.units * machines, Machines: machines, MachineType: kind.name,
		AcceleratorType: kind.acceleratorType(machines), Tier: tierOf(detail.instance),
		MaxRun:      time.Duration(scheduling.MaxRunDuration.Seconds) * time.Second,
		VanishAtEnd: scheduling.InstanceTerminationAction == "DELETE",
		Labels:      detail.instance.Labels, Metadata: metadataOf(detail.instance.Metadata),
		External: externalOf(detail.instance), Detail: detail, Changed: changed,
	}
	if kind.gpu {
		spec.GPUs = kind.units
	}
	for _, disk := range detail.instance.Disks {
		if start := disk.InitializeParams; disk.Boot && start != nil && start.SourceImage != "" {
			spec.BootImage = start.SourceImage
		}
	}
	for _, account := range detail.instance.ServiceAccounts {
		spec.ServiceAccount = account.Email
	}
	return spec
}

func metadataOf(m computeapi.Metadata) map[string]string {
	values := map[string]string{}
	for _, item := range m.Items {
		values[item.Key] = item.Value
	}
	return values
}

func externalOf(instance *computeapi.Instance) bool {
	for _, network := range instance.NetworkInterfaces {
		if len(network.AccessConfigs) > 0 {
			return true
		}
	}
	return false
}

// checkMachine holds what is asked for to what the service takes. where is
// "resource" or "resource.properties"; no zone: not checked.
func checkMachine(c *cloud.Cloud, r *request, instance *computeapi.Instance, where string) error {
	kind, ok := parseMachineType(instance.MachineType)
	offered := c.Offered(r.zone)
	if !ok || r.zone != "" && !slices.Contains(offered, kind.kind) {
		return invalid("Invalid value for field '%s.machineType': '%s'. Machine type with name '%s' does not exist in zone '%s'.",
			where, instance.MachineType, kind.name, r.zone)
	}
	if len(instance.NetworkInterfaces) == 0 {
		return invalid("Invalid value for field '%s.networkInterfaces': ''. At least one network interface is required.", where)
	}
	for i, network := range instance.NetworkInterfaces {
		if name := lastPart(network.Network); network.Network != "" && !c.HasNetwork(name) {
			return invalid("Invalid value for field '%s.networkInterfaces[%d].network': '%s'. "+
				"The referenced network resource cannot be found.", where, i, network.Network)
		}
		if name := lastPart(network.Subnetwork); network.Subnetwork != "" && !c.HasNetwork(name) {
			return invalid("Invalid value for field '%s.networkInterfaces[%d].subnetwork': '%s'. "+
				"The referenced subnetwork resource cannot be found.", where, i, network.Subnetwork)
		}
	}
	if len(instance.Disks) == 0 {
		return invalid("Invalid value for field '%s.disks': ''. No boot disk specified.", where)
	}
	if err := checkScheduling(instance.Scheduling, where); err != nil {
		return err
	}
	if err := checkGPUs(c, r, instance, where); err != nil {
		return err
	}
	return checkLabels(instance.Labels, where)
}

func checkScheduling(scheduling computeapi.Scheduling, where string) error {
	model, action := scheduling.ProvisioningModel, scheduling.InstanceTerminationAction
	switch model {
	case "", "STANDARD", "SPOT", "RESERVATION_BOUND":
	case "FLEX_START":
		if scheduling.MaxRunDuration.Seconds <= 0 {
			return invalid("Invalid value for field '%s.scheduling.maxRunDuration': ''. "+
				"Max run duration must be specified for FLEX_START.", where)
		}
	default:
		return invalid("Invalid value for field '%s.scheduling.provisioningModel': '%s'.", where, model)
	}
	ends := model == "SPOT" || model == "FLEX_START" || model == "RESERVATION_BOUND" || scheduling.MaxRunDuration.Seconds > 0
	switch {
	case action != "" && action != "STOP" && action != "DELETE", action != "" && !ends:
		return invalid("Invalid value for field '%s.scheduling.instanceTerminationAction': '%s'.", where, action)
	case model == "SPOT" && scheduling.AutomaticRestart != nil && *scheduling.AutomaticRestart:
		return invalid("Invalid value for field '%s.scheduling.automaticRestart': 'true'. "+
			"Scheduling must have automatic restart disabled when the provisioning model is SPOT.", where)
	case model == "SPOT" && scheduling.OnHostMaintenance == "MIGRATE":
		return invalid("Invalid value for field '%s.scheduling.onHostMaintenance': 'MIGRATE'.", where)
	}
	return nil
}

func checkName(name string) error {
	if !regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString(name) {
		return invalid("Invalid value for field 'resource.name': '%s'. Must be a match of regex "+
			"'(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'", name)
	}
	return nil
}

func checkLabels(labels map[string]string, where string) error {
	key, value := regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`), regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
	for k, v := range labels {
		switch {
		case !key.MatchString(k):
			return invalid("Invalid value for field '%s.labels': ''. Label key '%s' violates format constraints.", where, k)
		case !value.MatchString(v):
			return invalid("Invalid value for field '%s.labels': ''. Label value '%s' violates format constraints.", where, v)
		}
	}
	return nil
}

// asInstance is an instance of a template's properties.
func asInstance(p computeapi.InstanceProperties) *computeapi.Instance {
	return &computeapi.Instance{InstanceProperties: p}
}
