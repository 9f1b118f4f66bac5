package language

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/schema"
)

// acceleratorNames are what other tools call an accelerator that is no TPU.
func acceleratorNames() []string { return []string{"gpu", "gpus", "accelerator", "accelerators"} }

// gpuBlock is how GPUs are asked for.
const gpuBlock = `GPUs are a block of resources: gpu, with the attributes type = "h100" and count = 8, each on a line of its own.`

// Instead suggests what to write for an attribute that the block has not.
// Jobs and services have the same meaning under different names.
func (t *BlockType) Instead(name string) string {
	switch {
	case name == "replicas" && t.Attr("count") != nil:
		return `Use "count": how many instances.`
	case (name == "count" || name == "for_each") && t.Attr("replicas") != nil:
		return `Use "replicas" for their number; count.index distinguishes them.`
	case t.hasResources() && slices.Contains(acceleratorNames(), name):
		return gpuBlock
	}
	if at := slices.IndexFunc(t.Blocks, func(b *BlockType) bool { return !b.Open && b.Attr(name) != nil }); at >= 0 {
		return fmt.Sprintf("It stands in a block of its own: write %s { %s = … }.", t.Blocks[at].Name, name)
	}
	return diagnose.DidYouMean(name, append(t.AttrNames(), t.BlockNames()...))
}

// hasResources reports whether the block, or one in it, states what a job runs on.
func (t *BlockType) hasResources() bool {
	return t.Attr("tpu") != nil || slices.ContainsFunc(t.Blocks, func(b *BlockType) bool { return b.Attr("tpu") != nil })
}

// BlockInstead suggests what to write for a block, with its labels, that has no place
// in a block of this type.
func (t *BlockType) BlockInstead(name string, labels []string) string {
	root := Root()
	top := root.Variants(name)
	switch {
	case name == "dynamic":
		return "A block with a name of its own is repeated by count or for_each in it."
	case name == ActorBlock && t.Name == string(schema.KindJob):
		return "Actors are hosted by services: write actor_service instead of job."
	case t.hasResources() && slices.Contains(acceleratorNames(), name):
		return gpuBlock
	case t.Name == root.Name && name == "resource":
		return resourceInstead(root, labels)
	case t.Name == root.Name && name == "terraform":
		return `Write fray { required_version = "…" } for the version, and a state block in it for the backend. Providers need no declaration of versions.`
	case t.Name == root.Name && slices.Contains(scenarioBlocks(), name):
		return "It is a block of a scenario for fray rehearse or fray emulate gcp: name its file NAME.scenario.hcl, so that it is no part of the configuration."
	case t.Name == root.Name && (name == "policy" || name == "policy_set"):
		return "It stands in a file of its own beside the configuration: name the file NAME.policy.hcl."
	case len(top) > 0 && t.Name != root.Name && name == string(schema.KindJobGroup):
		return "A group stands at the top and has its jobs in it: " + Header(top[0]) + " around job blocks."
	case len(top) > 0 && t.Name != root.Name && name == string(schema.KindJob):
		return "A job stands at the top or in a job_group: close the block before it. Use depends_on, or a reference to an attribute, for their order."
	case len(top) > 0 && t.Name != root.Name:
		return fmt.Sprintf("It stands at the top, outside of all blocks: %s.", Header(top[0]))
	case schema.Nearest(name, t.BlockNames()) == "" && schema.Nearest(name, t.AttrNames()) != "":
		return fmt.Sprintf("Did you mean the attribute %q?", schema.Nearest(name, t.AttrNames()))
	case len(t.Blocks) == 0:
		return "No block stands in it."
	}
	return diagnose.DidYouMean(name, t.BlockNames())
}

// scenarioBlocks are the blocks of a scenario, which guides/scenario.md describes.
func scenarioBlocks() []string {
	return []string{"zone", "network", "quota", "stockout", "outage", "at", "workload"}
}

// resourceInstead is what to write for a resource block of Terraform.
func resourceInstead(root *BlockType, labels []string) string {
	if len(labels) == 2 && len(root.Variants(labels[0])) > 0 {
		return fmt.Sprintf("Its kind is the name of the block: write %s %q { … }.", labels[0], labels[1])
	}
	var kinds []string
	for _, k := range schema.Kinds() {
		kinds = append(kinds, string(k))
	}
	return fmt.Sprintf("Its kind is the name of the block, such as job %q { … }. The kinds are %s.", "NAME", strings.Join(kinds, ", "))
}
