package schema

// moduleType is a block that calls a module; the names of its arguments are
// those of the module's variables.
func moduleType() *blockType {
	return &blockType{
		name: "module", label: "NAME", repeated: true, open: true,
		doc: "use the files of another directory or archive: module.NAME.OUTPUT; every other attribute is a variable of the module",
		attrs: []attribute{
			{name: "source", typ: "string", required: true, doc: "./DIR, or an archive: gs://BUCKET/PATH/NAME or file:///PATH/NAME", mode: modeConstant},
			{name: "version", typ: "string", def: "the newest", doc: `of an archive, such as "~> 1.2"`, mode: modeConstant},
			{name: "count", typ: "number", doc: "how many instances: module.NAME[0], …", mode: modeShape},
			{name: "for_each", typ: "map or set of strings", doc: `one instance for each key: module.NAME["key"]`, mode: modeShape},
			{name: "providers", typ: "map of references", def: "all", doc: "what its blocks find as a provider: { gcp = provider.local }", mode: modeRaw},
			dependsOnAttribute(),
		},
	}
}

func dataTypes() []*blockType {
	common := func(attrs ...attribute) []attribute {
		return append(attrs,
			attribute{name: "count", typ: "number", doc: "how many", mode: modeShape},
			attribute{name: "for_each", typ: "map or set of strings", doc: "one for each key", mode: modeShape},
			dependsOnAttribute(),
		)
	}
	stack := []attribute{
		{name: "path", typ: "string", def: "this stack", doc: "the directory of the other stack's state, such as ../pools/.fray"},
		{name: "bucket", typ: "string", doc: "of the other stack's state, where it is in a bucket"},
		{name: "prefix", typ: "string", def: "the bucket's root", doc: "in the bucket"},
		{name: "workspace", typ: "string", def: "default", doc: "of the other stack"},
	}
	return []*blockType{
		{
			name: "data", variant: string(DataOutputs), label: "KIND", label2: "NAME", repeated: true,
			doc:   "the outputs of another stack: data.outputs.NAME.values.OUTPUT",
			attrs: common(append(stack, attribute{name: "defaults", typ: "map", doc: "of outputs that the other stack does not have"})...),
		},
		{
			name: "data", variant: string(DataReservation), label: "KIND", label2: "NAME", repeated: true,
			doc: "a reservation as it is: data.reservation.NAME.slices",
			attrs: common(append(stack,
				attribute{name: "name", typ: "string", def: "the block's", doc: "of the reservation"},
			)...),
		},
		{
			name: "data", variant: string(DataAccelerators), label: "KIND", label2: "NAME", repeated: true,
			doc: "what a provider offers: data.accelerators.NAME.types",
			attrs: common(
				attribute{name: "provider", typ: "string", def: "the only declared provider, else local", doc: "local or gcp"},
				attribute{name: "generation", typ: "string", def: "all", doc: "such as v5litepod"},
				attribute{name: "min_chips", typ: "number", def: "1", doc: "of a slice"},
				attribute{name: "max_chips", typ: "number", def: "no limit", doc: "of a slice"},
				attribute{name: "zones", typ: "list of strings", def: "all", doc: "where it must be offered, in one of them"},
			),
		},
	}
}

// checkType is a check block. A data block in it is read for it alone.
func checkType() *blockType {
	return &blockType{
		name: "check", label: "NAME", repeated: true,
		doc:    "conditions that are looked at in every plan and after every apply; a failure only warns",
		blocks: append(dataTypes(), conditionType("assert", "must hold; may refer to everything")),
	}
}

func conditionType(name, doc string) *blockType {
	return &blockType{
		name: name, repeated: true, doc: doc,
		attrs: []attribute{
			{name: "condition", typ: "bool", required: true, doc: "what must be true"},
			{name: "error_message", typ: "string", required: true, doc: "what to say when the condition is false"},
		},
	}
}

func movedType() *blockType {
	return &blockType{
		name: "moved", repeated: true,
		doc: "what was declared under another address and keeps running under the new one",
		attrs: []attribute{
			{name: "from", typ: "address", required: true, doc: "the old address", mode: modeRaw},
			{name: "to", typ: "address", required: true, doc: "the new address", mode: modeRaw},
		},
	}
}

func importType() *blockType {
	return &blockType{
		name: "import", repeated: true,
		doc: "take over slices that exist, with what runs on them",
		attrs: []attribute{
			{name: "to", typ: "address", required: true, doc: "of the job, service or reservation that is to have them", mode: modeRaw},
			{name: "id", typ: "string", required: true, doc: "the name of the slice, or names with commas between"},
		},
	}
}

func removedType() *blockType {
	return &blockType{
		name: "removed", repeated: true,
		doc: "what is declared no more, and whether it is to be destroyed",
		attrs: []attribute{
			{name: "from", typ: "address", required: true, doc: "what it was", mode: modeRaw},
		},
		blocks: []*blockType{{
			name: "lifecycle", doc: "what becomes of it",
			attrs: []attribute{
				{name: "destroy", typ: "bool", def: "true", doc: "false: let go of it; it runs on", mode: modeConstant},
			},
		}},
	}
}

// lifecycleType is the lifecycle block of what has slices.
func lifecycleType(conditions bool, more ...attribute) *blockType {
	t := &blockType{
		name: "lifecycle", doc: "what plans may do to it",
		attrs: append([]attribute{
			{name: "prevent_destroy", typ: "bool", def: "false", doc: "refuse plans that delete or replace it", mode: modeConstant},
			{name: "ignore_changes", typ: "list of attributes, or all", doc: "attributes whose changes are left alone, such as [environment.env, labels]", mode: modeRaw},
		}, more...),
	}
	if conditions {
		t.blocks = []*blockType{
			conditionType("precondition", "must hold before anything of it is done"),
			selfConditions(conditionType("postcondition", "must hold once it is there; self is the thing itself")),
		}
	}
	return t
}

// selfConditions lets the attributes of a block refer to self.
func selfConditions(t *blockType) *blockType {
	for i := range t.attrs {
		t.attrs[i].mode = modeSelf
	}
	return t
}

func workloadLifecycleType() *blockType {
	return lifecycleType(true,
		attribute{name: "create_before_destroy", typ: "bool", def: "false", doc: "on a replacement, get the new slices before the old ones are given up, where capacity allows", mode: modeConstant},
		attribute{name: "replace_triggered_by", typ: "list of references", doc: "replace it when one of these changes: job.x, job.x.command, reservation.y, var.z, local.w", mode: modeRaw},
	)
}
