package language

import "github.com/fray-ml/fray/schema"

// moduleType is a block that calls a module; the names of its arguments are
// those of the module's variables.
func moduleType() *BlockType {
	return &BlockType{
		Name: "module", Label: "NAME", Repeated: true, Open: true,
		Doc: "use the files of another directory or archive: module.NAME.OUTPUT; every other attribute is a variable of the module",
		Attrs: []Attribute{
			{Name: "source", Type: "string", Required: true, Doc: "./DIR, or an archive: gs://BUCKET/PATH/NAME or file:///PATH/NAME", Mode: ModeConstant},
			{Name: "version", Type: "string", Default: "the newest", Doc: `of an archive, such as "~> 1.2"`, Mode: ModeConstant},
			{Name: "count", Type: "number", Doc: "how many instances: module.NAME[0], …", Mode: ModeShape},
			{Name: "for_each", Type: "map or set of strings", Doc: `one instance for each key: module.NAME["key"]`, Mode: ModeShape},
			{Name: "providers", Type: "map of references", Default: "all", Doc: "what its blocks find as a provider: { gcp = provider.local }", Mode: ModeRaw},
			dependsOnAttribute(),
		},
	}
}

func dataTypes() []*BlockType {
	common := func(attrs ...Attribute) []Attribute {
		return append(attrs,
			Attribute{Name: "count", Type: "number", Doc: "how many", Mode: ModeShape},
			Attribute{Name: "for_each", Type: "map or set of strings", Doc: "one for each key", Mode: ModeShape},
			dependsOnAttribute(),
		)
	}
	stack := []Attribute{
		{Name: "path", Type: "string", Default: "this stack", Doc: "the directory of the other stack's state, such as ../pools/.fray"},
		{Name: "bucket", Type: "string", Doc: "of the other stack's state, where it is in a bucket"},
		{Name: "prefix", Type: "string", Default: "the bucket's root", Doc: "in the bucket"},
		{Name: "workspace", Type: "string", Default: "default", Doc: "of the other stack"},
	}
	return []*BlockType{
		{
			Name: "data", Variant: string(DataOutputs), Label: "KIND", Label2: "NAME", Repeated: true,
			Doc:   "the outputs of another stack: data.outputs.NAME.values.OUTPUT",
			Attrs: common(append(stack, Attribute{Name: "defaults", Type: "map", Doc: "of outputs that the other stack does not have"})...),
		},
		{
			Name: "data", Variant: string(DataReservation), Label: "KIND", Label2: "NAME", Repeated: true,
			Doc: "a reservation as it is: data.reservation.NAME.slices",
			Attrs: common(append(stack,
				Attribute{Name: "name", Type: "string", Default: "the block's", Doc: "of the reservation"},
			)...),
		},
		{
			Name: "data", Variant: string(DataAccelerators), Label: "KIND", Label2: "NAME", Repeated: true,
			Doc: "what a provider offers: data.accelerators.NAME.types",
			Attrs: common(
				Attribute{Name: "provider", Type: "string", Values: valuesOf(schema.ProviderNames()...), Default: "the only declared provider, else local", Doc: "local, gcp or ray"},
				Attribute{Name: "generation", Type: "string", Default: "all", Doc: "such as v5litepod"},
				Attribute{Name: "gpu", Type: "string", Names: NamesOfGPUTypes, Default: "all", Doc: "GPU type, such as h100; without generation there are then no TPU offers, as there are no GPUs with generation alone"},
				Attribute{Name: "min_chips", Type: "number", Default: "1", Doc: "of a slice: TPU chips, or GPUs of a machine"},
				Attribute{Name: "max_chips", Type: "number", Default: "no limit", Doc: "likewise"},
				Attribute{Name: "zones", Type: "list of strings", Names: NamesOfZones, Default: "all", Doc: "where it must be offered, in one of them"},
			),
		},
	}
}

// checkType is a check block. A data block in it is read for it alone.
func checkType() *BlockType {
	return &BlockType{
		Name: "check", Label: "NAME", Repeated: true,
		Doc:    "conditions that every plan and every apply evaluates; a failure only warns",
		Blocks: append(dataTypes(), ConditionType("assert", "must hold; may refer to everything")),
	}
}

// ConditionType is the type of a block with a condition and an error_message.
func ConditionType(name, doc string) *BlockType {
	return &BlockType{
		Name: name, Repeated: true, Doc: doc,
		Attrs: []Attribute{
			{Name: "condition", Type: "bool", Required: true, Doc: "what must be true"},
			{Name: "error_message", Type: "string", Required: true, Doc: "the message when the condition is false"},
		},
	}
}

func movedType() *BlockType {
	return &BlockType{
		Name: "moved", Repeated: true,
		Doc: "what was declared under another address and keeps running under the new one",
		Attrs: []Attribute{
			{Name: "from", Type: "address", Required: true, Doc: "the old address", Mode: ModeRaw},
			{Name: "to", Type: "address", Required: true, Doc: "the new address", Mode: ModeRaw},
		},
	}
}

func importType() *BlockType {
	return &BlockType{
		Name: "import", Repeated: true,
		Doc: "take over slices that exist, with what runs on them",
		Attrs: []Attribute{
			{Name: "to", Type: "address", Required: true, Doc: "of the job, service or reservation that is to have them", Mode: ModeRaw},
			{Name: "id", Type: "string", Required: true, Doc: "the name of the slice, or names with commas between"},
		},
	}
}

func removedType() *BlockType {
	return &BlockType{
		Name: "removed", Repeated: true,
		Doc: "what is declared no more, and whether it is to be destroyed",
		Attrs: []Attribute{
			{Name: "from", Type: "address", Required: true, Doc: "what it was", Mode: ModeRaw},
		},
		Blocks: []*BlockType{{
			Name: "lifecycle", Doc: "what becomes of it",
			Attrs: []Attribute{
				{Name: "destroy", Type: "bool", Default: "true", Doc: "false: release it from the state; it keeps running", Mode: ModeConstant},
			},
		}},
	}
}

// lifecycleType is the lifecycle block of what has slices.
func lifecycleType(conditions bool, more ...Attribute) *BlockType {
	t := &BlockType{
		Name: "lifecycle", Doc: "what plans may do to it",
		Attrs: append([]Attribute{
			{Name: "prevent_destroy", Type: "bool", Default: "false", Doc: "refuse plans that delete or replace it", Mode: ModeConstant},
			{Name: "ignore_changes", Type: "list of attributes, or all", Doc: "attributes whose changes are left alone, such as [environment.env, labels]", Mode: ModeRaw},
		}, more...),
	}
	if conditions {
		t.Blocks = []*BlockType{
			ConditionType("precondition", "must hold before anything of it is done"),
			selfConditions(ConditionType("postcondition", "must hold once the object exists; self refers to the object")),
		}
	}
	return t
}

// selfConditions lets the attributes of a block refer to self.
func selfConditions(t *BlockType) *BlockType {
	for i := range t.Attrs {
		t.Attrs[i].Mode = ModeSelf
	}
	return t
}

func workloadLifecycleType() *BlockType {
	return lifecycleType(true,
		Attribute{Name: "create_before_destroy", Type: "bool", Default: "false", Doc: "on a replacement, get the new slices before the old ones are given up, where capacity allows", Mode: ModeConstant},
		Attribute{Name: "replace_triggered_by", Type: "list of references", Doc: "replace it when one of these changes: job.x, job.x.command, reservation.y, var.z, local.w", Mode: ModeRaw},
	)
}
