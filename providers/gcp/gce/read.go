package gce

import (
	"slices"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// readGroups puts together what was found of each group of the stack. Of a zone
// that was left out of a list nothing is believed: half of a slice would count as dead.
func (g *Engine) readGroups(finds finds, records *mark.SpecReader, stack string, listed *engine.Listing) []machineGroup {
	var groups []machineGroup
	for _, template := range finds.templates {
		marks := templateMarks(template)
		at := engine.Place{Engine: schema.EngineGCE, Zone: marks.Zone, Name: marks.Name}
		if !marks.Owned(stack) {
			listed.Others = append(listed.Others, at)
			continue
		}
		if _, blind := finds.unlisted[at.Zone]; blind {
			continue
		}
		group := finds.groups[at.Zone+"/"+at.Name]
		if group != nil && ownGroup(group, at.Name) != nil {
			group = nil
		}
		marks = groupMarks(template, group)
		spec, err := records.Read(marks)
		if err != nil {
			listed.Skipped = append(listed.Skipped, mark.Skipped(marks, err))
			continue
		}
		machines := slices.DeleteFunc(slices.Clone(finds.machines[at.Zone+"/"+at.Name]), func(m *computeapi.Instance) bool {
			return m.Name == at.Name
		})
		f := machineGroup{spec: spec, template: template, group: group, machines: machines}
		if group != nil {
			f.age = g.now().Sub(createdAt(group.CreationTimestamp))
		}
		groups = append(groups, f)
	}
	return groups
}

// groupMarks are those of a group: of its template, and what was changed since that
// was made, which a template cannot be.
func groupMarks(template *computeapi.InstanceTemplate, group *computeapi.InstanceGroupManager) mark.Marks {
	marks := templateMarks(template)
	if group == nil || group.AllInstancesConfig == nil {
		return marks
	}
	if text := group.AllInstancesConfig.Properties.Metadata[mark.KeySpec]; text != "" {
		marks.Text = text
	}
	return marks
}

// isOfGroup reports whether a managed instance group made a machine.
func isOfGroup(machine *computeapi.Instance) bool {
	return metadataText(machine.Metadata, "created-by") != ""
}

// readMachines lists the slices of one machine.
func (g *Engine) readMachines(finds finds, records *mark.SpecReader, stack string, listed *engine.Listing) {
	for _, machines := range finds.machines {
		for _, machine := range machines {
			marks := instanceMarks(machine)
			if marks.Name != marks.Labels[mark.SliceLabel] {
				if marks.Owned(stack) && !isOfGroup(machine) {
					listed.Skipped = append(listed.Skipped, mark.Skipped(marks, mark.CopyOf(marks)))
				}
				continue
			}
			if !marks.Owned(stack) {
				listed.Others = append(listed.Others, engine.Place{Engine: schema.EngineGCE, Zone: marks.Zone, Name: marks.Name})
				continue
			}
			if _, blind := finds.unlisted[marks.Zone]; blind {
				continue
			}
			spec, err := records.Read(marks)
			if err != nil && machineStateOf(machine.Status) != machineEnded {
				listed.Skipped = append(listed.Skipped, mark.Skipped(marks, err))
				continue
			}
			if err != nil {
				spec = guessedSpec(marks, machine)
			}
			listed.Slices = append(listed.Slices, new(machineStatus(spec, machine, g.isGoing(spec.Name))))
		}
	}
}

// guessedSpec is a spec as far as the cloud itself knows it. It has no owner.
func guessedSpec(marks mark.Marks, machine *computeapi.Instance) schema.SliceSpec {
	return schema.SliceSpec{
		Name: marks.Name, Stack: marks.Labels[mark.StackLabel], Provider: schema.ProviderGCP, Zone: marks.Zone, Hosts: 1,
		MachineType: baseOf(machine.MachineType), Preemptible: machine.Scheduling.ProvisioningModel == "SPOT",
		Cloud: schema.CloudSpec{Engine: schema.EngineGCE},
	}
}
