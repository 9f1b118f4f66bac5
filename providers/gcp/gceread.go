package gcp

import (
	"slices"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/schema"
)

// readGroups puts together what was found of each group of the stack. Of a zone
// that was left out of a list nothing is believed: half of a slice looks dead.
func (g *gce) readGroups(finds gceFinds, records *specReader, stack string, listed *listing) []gceGroup {
	var groups []gceGroup
	for _, template := range finds.templates {
		said := templateMarks(template)
		at := place{engine: schema.EngineGCE, zone: said.zone, name: said.name}
		if !said.owned(stack) {
			listed.others = append(listed.others, at)
			continue
		}
		if _, blind := finds.unlisted[at.zone]; blind {
			continue
		}
		group := finds.groups[at.zone+"/"+at.name]
		if group != nil && ownGroup(group, at.name) != nil {
			group = nil
		}
		said = groupMarks(template, group)
		spec, err := records.read(said)
		if err != nil {
			listed.skipped = append(listed.skipped, skippedItem(said, err))
			continue
		}
		machines := slices.DeleteFunc(slices.Clone(finds.machines[at.zone+"/"+at.name]), func(m *computepb.Instance) bool {
			return m.GetName() == at.name
		})
		groups = append(groups, gceGroup{
			spec: spec, template: template, group: group, machines: machines, age: g.now().Sub(createdAt(group.GetCreationTimestamp())),
		})
	}
	return groups
}

// groupMarks are those of a group: of its template, and what was changed since that
// was made, which a template cannot be.
func groupMarks(template *computepb.InstanceTemplate, group *computepb.InstanceGroupManager) marks {
	said := templateMarks(template)
	if text := group.GetAllInstancesConfig().GetProperties().GetMetadata()[metadataSpec]; text != "" {
		said.text = text
	}
	return said
}

// isOfGroup reports whether a managed instance group made a machine.
func isOfGroup(machine *computepb.Instance) bool {
	return metadataText(machine.GetMetadata(), "created-by") != ""
}

// unreadable is why a slice cannot be listed. Listed without its owner, it would be
// deleted.
func unreadable(said marks, err error) error {
	return failf(schema.ErrorUnavailable, "%s in %s carries the mark of stack %s, but %w; mend that, delete it, or take its label %s away",
		said.name, said.zone, said.labels[stackLabel], err, stackLabel)
}

// readMachines lists the slices of one machine.
func (g *gce) readMachines(finds gceFinds, records *specReader, stack string, listed *listing) {
	for _, machines := range finds.machines {
		for _, machine := range machines {
			said := instanceMarks(machine)
			if said.name != said.labels[sliceLabel] {
				if said.owned(stack) && !isOfGroup(machine) {
					listed.skipped = append(listed.skipped, skippedItem(said, copyOf(said)))
				}
				continue
			}
			if !said.owned(stack) {
				listed.others = append(listed.others, place{engine: schema.EngineGCE, zone: said.zone, name: said.name})
				continue
			}
			if _, blind := finds.unlisted[said.zone]; blind {
				continue
			}
			spec, err := records.read(said)
			if err != nil && machineStateOf(machine.GetStatus()) != machineEnded {
				listed.skipped = append(listed.skipped, skippedItem(said, err))
				continue
			}
			if err != nil {
				spec = guessedSpec(said, machine)
			}
			listed.slices = append(listed.slices, machineStatus(spec, machine, g.isGoing(spec.Name)))
		}
	}
}

// guessedSpec is a spec as far as the cloud itself knows it. It has no owner.
func guessedSpec(said marks, machine *computepb.Instance) schema.SliceSpec {
	return schema.SliceSpec{
		Name: said.name, Stack: said.labels[stackLabel], Provider: schema.ProviderGCP, Zone: said.zone, Hosts: 1,
		MachineType: baseOf(machine.GetMachineType()), Preemptible: machine.GetScheduling().GetProvisioningModel() == "SPOT",
		Cloud: schema.CloudSpec{Engine: schema.EngineGCE},
	}
}
