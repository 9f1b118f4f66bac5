package schema

// blockType describes one kind of block: what may stand in it and what each
// part means. The tree that language returns is the whole language; the
// structural check is driven by it, and documentation can be made from it.
type blockType struct {
	name    string
	variant string // the label that chooses this type among those of one name, as in provider "gcp"
	label   string // what the label is, "" for a block without one
	label2  string // what a second label is, which then is the name
	// freeLabel: the label names something outside, and may be any text.
	freeLabel bool
	doc       string
	repeated  bool // may stand more than once in its parent
	open      bool // any attribute name is allowed, as in locals
	attrs     []attribute
	blocks    []*blockType
}

// attribute describes one attribute of a block.
type attribute struct {
	name     string
	typ      string // in words, "list of strings"
	def      string // in words, "" where there is none
	doc      string
	required bool
	mode     attributeMode
}

// attributeMode says how an attribute's expression is read.
type attributeMode uint8

const (
	modeValue    attributeMode = iota // evaluated, references allowed
	modeShape                         // evaluated before there are instances: no count.index, no each
	modeConstant                      // evaluated without references
	modeRaw                           // not evaluated: a type, or a list of addresses
	modeSelf                          // evaluated, references allowed, to self too
)

// attr finds an attribute by name.
func (t *blockType) attr(name string) *attribute {
	for i := range t.attrs {
		if t.attrs[i].name == name {
			return &t.attrs[i]
		}
	}
	return nil
}

// variants returns the block types of a name that may stand in t.
func (t *blockType) variants(name string) []*blockType {
	var found []*blockType
	for _, b := range t.blocks {
		if b.name == name {
			found = append(found, b)
		}
	}
	return found
}

func (t *blockType) attrNames() []string {
	names := make([]string, 0, len(t.attrs))
	for _, a := range t.attrs {
		names = append(names, a.name)
	}
	return names
}

func (t *blockType) blockNames() []string {
	names := make([]string, 0, len(t.blocks))
	for _, b := range t.blocks {
		names = append(names, b.name)
	}
	return names
}

// language returns the root of the table: what may stand in a file.
func language() *blockType {
	root := &blockType{
		name: "the configuration",
		blocks: []*blockType{
			frayType(),
			variableType(),
			{name: "locals", doc: "names for expressions: local.NAME", repeated: true, open: true},
			localProviderType(),
			gcpProviderType(),
			namespaceType(),
			reservationType(),
			jobGroupType(),
			jobType(),
			actorServiceType(),
			{
				name: "controller",
				doc:  "where fray watch runs; without it, wherever it is started",
				attrs: []attribute{
					{name: "provider", typ: "string", def: "the only declared provider, else local", doc: "local or gcp"},
				},
			},
			outputType(),
			moduleType(),
			checkType(),
			movedType(),
			importType(),
			removedType(),
		},
	}
	root.blocks = append(root.blocks, dataTypes()...)
	return root
}

func frayType() *blockType {
	return &blockType{
		name: "fray",
		doc:  "settings of the tool",
		attrs: []attribute{
			{name: "required_version", typ: "string", doc: `versions of fray that may run this, such as "~> 0.1"`, mode: modeConstant},
		},
		blocks: []*blockType{
			{
				name: "state", variant: string(BackendLocal), label: "BACKEND",
				doc: "keep the state in a directory",
				attrs: []attribute{
					{name: "path", typ: "string", def: ".fray", doc: "the directory, relative to the configuration", mode: modeConstant},
				},
			},
			{
				name: "state", variant: string(BackendGCS), label: "BACKEND",
				doc: "keep the state in a Cloud Storage bucket",
				attrs: []attribute{
					{name: "bucket", typ: "string", required: true, doc: "the bucket, without gs://", mode: modeConstant},
					{name: "prefix", typ: "string", def: "the bucket's root", doc: "of the objects of this stack", mode: modeConstant},
					{
						name: "kms_key", typ: "string", def: "as the bucket says", mode: modeConstant,
						doc: "Cloud KMS key with which Cloud Storage encrypts what is written: projects/P/locations/L/keyRings/R/cryptoKeys/K",
					},
				},
			},
			{
				name: "encryption",
				doc:  "encrypt the state and saved plans before they are written; one of recipients and kms_key",
				attrs: []attribute{
					{name: "recipients", typ: "list of strings", doc: "age or SSH public keys of those who may read; an empty list turns encryption off", mode: modeConstant},
					{name: "kms_key", typ: "string", doc: "gcp-kms://projects/… of a Cloud KMS key, or file:///… of a key file", mode: modeConstant},
				},
			},
		},
	}
}

func variableType() *blockType {
	return &blockType{
		name: "variable", label: "NAME", repeated: true,
		doc: "a value given from outside: var.NAME",
		attrs: []attribute{
			{name: "type", typ: "type", def: "any", doc: "such as string, list(number), object({ a = optional(string, \"x\") })", mode: modeRaw},
			{name: "default", typ: "value of the type", doc: "the value when none is given; without it, one must be", mode: modeConstant},
			{name: "description", typ: "string", doc: "for people", mode: modeConstant},
			{name: "sensitive", typ: "bool", def: "false", doc: "hide the value wherever it flows", mode: modeConstant},
			{name: "nullable", typ: "bool", def: "true", doc: "whether null is a value; if not, null means the default", mode: modeConstant},
			{name: "ephemeral", typ: "bool", def: "false", doc: "never kept: the value may stand in conditions and data blocks, and in nothing that is recorded", mode: modeConstant},
		},
		blocks: []*blockType{conditionType("validation", "a condition that the value must meet")},
	}
}

func localProviderType() *blockType {
	return &blockType{
		name: "provider", variant: string(ProviderLocal), label: "PROVIDER",
		doc: "slices of processes on this machine",
		attrs: []attribute{
			{name: "cpu", typ: "number", def: "no limit", doc: "cores that all slices together may use"},
			{name: "memory", typ: "size", def: "no limit", doc: "memory that all slices together may use"},
			{name: "slices", typ: "number", def: "no limit", doc: "slices at once"},
		},
	}
}

func reservationType() *blockType {
	end := func(name, doc string) *blockType {
		return &blockType{
			name: name, doc: doc,
			attrs: []attribute{
				{name: "tpu", typ: "string", doc: "TPU type of each slice, such as v5litepod-16"},
				{name: "cpu", typ: "number", doc: "cores of each slice; not together with tpu"},
				{name: "memory", typ: "size", doc: "of each slice; not together with tpu"},
				{name: "disk", typ: "size", doc: "of each slice; not together with tpu"},
				{name: "slices", typ: "number", def: "1", doc: "how many"},
			},
		}
	}
	t := &blockType{
		name: "reservation", label: "NAME", repeated: true,
		doc: "a pool of slices that jobs may draw from",
		attrs: []attribute{
			{name: "provider", typ: "string", def: "the only declared provider, else local", doc: "local or gcp"},
			{name: "priority", typ: "number", def: "0", doc: "the higher one gets capacity first, where a limit or quota is too small for all"},
			{name: "ttl", typ: "duration", def: "no end", doc: "how long the pool is held since it was made or last changed"},
			{name: "idle_timeout", typ: "duration", def: "5m", doc: "how long a slice beyond min may idle before it is released"},
			{name: "growth", typ: "string", def: "demand", doc: "demand: grow for jobs that wait; offer: keep one slice more than jobs hold, up to max"},
			{name: "namespace", typ: "reference", doc: "namespace.NAME: jobs launched there draw from it without naming it, where they ask for its shape"},
			{name: "preemptible", typ: "bool", def: "true for tpu, else false", doc: "whether its slices may be taken away"},
			{name: "zones", typ: "list of strings", def: "the provider's", doc: "in order of preference"},
			{name: "regions", typ: "list of strings", doc: "to choose zones from"},
		},
		blocks: []*blockType{
			end("min", "what is held always; none by default"),
			end("max", "what may be held at most, min by default"),
			lifecycleType(true),
		},
	}
	t.attrs = append(t.attrs, sliceAttributes()...)
	t.attrs = append(t.attrs, cloudAttributes(theProviders)...)
	return t
}

func outputType() *blockType {
	return &blockType{
		name: "output", label: "NAME", repeated: true,
		doc: "a value shown after apply",
		attrs: []attribute{
			{name: "value", typ: "any", required: true, doc: "may be known only after apply"},
			{name: "description", typ: "string", doc: "for people", mode: modeConstant},
			{name: "sensitive", typ: "bool", def: "false", doc: "hide the value; needed where a sensitive value flows in", mode: modeConstant},
			{name: "ephemeral", typ: "bool", def: "false", doc: "of a module: hand on an ephemeral value", mode: modeConstant},
			dependsOnAttribute(),
		},
		blocks: []*blockType{conditionType("precondition", "must hold for the value to be handed out")},
	}
}
