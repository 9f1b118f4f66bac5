package plan

import (
	"fmt"

	"github.com/fray-ml/fray/schema"
)

// ActionReason is why a change is what it is, where that is not its attributes.
// The names are Terraform's where it has one for the same.
type ActionReason string

// The reasons.
const (
	DeleteBecauseUndeclared ActionReason = "delete_because_no_resource_config" // no block declares it any more
	DeleteBecauseRepetition ActionReason = "delete_because_wrong_repetition"   // count, for_each or neither, where it was another
	DeleteBecauseCount      ActionReason = "delete_because_count_index"        // the count is lower
	DeleteBecauseEachKey    ActionReason = "delete_because_each_key"           // for_each does not have the key any more
	DeleteBecauseModule     ActionReason = "delete_because_no_module"          // the call of its module, or that instance, is gone
	DeleteBecauseGroup      ActionReason = "delete_because_no_job_group"       // its job group is not declared any more
	DeleteBecauseDestroy    ActionReason = "delete_because_destroy"            // fray destroy asks for it
	ReplaceByRequest        ActionReason = "replace_by_request"                // --replace names it
	ReplaceByTriggers       ActionReason = "replace_by_triggers"               // its replace_triggered_by
	ReplaceBecauseUpdate    ActionReason = "replace_because_cannot_update"     // what changes cannot change in place
)

// ActionReasons are all there are.
func ActionReasons() []ActionReason {
	return []ActionReason{
		DeleteBecauseUndeclared, DeleteBecauseRepetition, DeleteBecauseCount, DeleteBecauseEachKey, DeleteBecauseModule,
		DeleteBecauseGroup, DeleteBecauseDestroy, ReplaceByRequest, ReplaceByTriggers, ReplaceBecauseUpdate,
	}
}

// ExplainDeletions gives the deletions of a plan their reasons, by what the files
// declare. [Diff] knows nothing of blocks, so it is its caller who asks for this;
// without blocks (nil), everything is deleted because that was asked for.
func (p *Plan) ExplainDeletions(blocks map[string]schema.Block) {
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Verb != VerbDelete || c.ActionReason != "" {
			continue
		}
		c.ActionReason, c.Reason = DeleteBecauseDestroy, "fray destroy asks for it"
		if blocks != nil {
			c.ActionReason, c.Reason = whyDeleted(c.Addr, blocks)
		}
	}
}

// whyDeleted looks from the outermost module inwards for what is missing.
func whyDeleted(addr schema.Address, blocks map[string]schema.Block) (ActionReason, string) {
	for _, module := range addr.ModulePath() {
		block, declared := blocks[module.Base]
		if !declared {
			return DeleteBecauseModule, module.Base + " is not called any more"
		}
		if _, why := missing(module.Key, block); why != "" {
			return DeleteBecauseModule, module.Base + module.Key.String() + " is not called any more: " + why
		}
	}
	if group := addr.GroupAddress(); !group.IsZero() {
		if _, declared := blocks[group.String()]; !declared {
			return DeleteBecauseGroup, group.String() + " is not declared any more"
		}
	}
	block, declared := blocks[addr.Base().String()]
	if !declared {
		return DeleteBecauseUndeclared, addr.Base().String() + " is not declared any more"
	}
	if reason, why := missing(addr.Key, block); why != "" {
		return reason, why
	}
	return DeleteBecauseUndeclared, "it is not asked for any more"
}

// missing says why a block does not make the instance of a key; "" if it does.
func missing(key schema.Key, block schema.Block) (ActionReason, string) {
	index, counted := key.Int()
	name, keyed := key.Str()
	switch {
	case counted && block.Repetition == schema.RepeatCount:
		if index >= block.Instances {
			return DeleteBecauseCount, fmt.Sprintf("index %d is out of range for %s %d", index, block.Attribute, block.Instances)
		}
	case keyed && block.Repetition == schema.RepeatEach:
		if !block.HasKey(name) {
			return DeleteBecauseEachKey, fmt.Sprintf("key %q is not in for_each any more", name)
		}
	case key.IsZero() && block.Repetition == schema.RepeatNone:
	default:
		return DeleteBecauseRepetition, "the block " + repetitionWords(block) + ", and " + keyWords(key)
	}
	return "", ""
}

func repetitionWords(block schema.Block) string {
	if block.Repetition == schema.RepeatNone {
		return "has neither count nor for_each now"
	}
	return "has " + block.Attribute + " now"
}

func keyWords(key schema.Key) string {
	if key.IsZero() {
		return "this instance has no key"
	}
	return "this instance has the key " + key.String()
}
