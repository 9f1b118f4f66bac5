package language

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// Settings are the types of the blocks that have no name of their own: those
// that a dynamic block can make.
func (t *BlockType) Settings() []*BlockType {
	if t.LabelCount() == 0 && t.Name == "the configuration" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.Blocks), func(b *BlockType) bool { return b.Label != "" })
}

// BlockType describes one kind of block: what may stand in it and what each
// part means. The tree that language returns is the whole language; the
// structural check is driven by it, and documentation can be made from it.
type BlockType struct {
	Name    string
	Variant string // the label that chooses this type among those of one name, as in provider "gcp"
	Label   string // what the label is, "" for a block without one
	Label2  string // what a second label is, which then is the name
	// freeLabel: the label names something outside, and may be any text.
	FreeLabel bool
	Doc       string
	Repeated  bool // may stand more than once in its parent
	Open      bool // any attribute name is allowed, as in locals
	Attrs     []Attribute
	Blocks    []*BlockType
}

// Attribute describes one attribute of a block.
type Attribute struct {
	Name     string
	Type     string // as people write it, "list of strings"
	Default  string // as people write it, "" where there is none
	Doc      string
	Required bool
	Mode     Mode
	Values   []string // the only ones that it takes, nil if there is no such list
	Names    NameKind // of what its texts are names
}

// NameKind is a closed set of kinds of names that fray knows many of.
type NameKind string

// The kinds. A cloud may have zones and regions that fray does not know.
const (
	NamesOfNothing  NameKind = ""
	NamesOfTPUTypes NameKind = "tpu_type"
	NamesOfGPUTypes NameKind = "gpu_type"
	// NamesOfAccelerators are TPU types, and GPUs as "TYPE:COUNT".
	NamesOfAccelerators NameKind = "accelerator"
	NamesOfZones        NameKind = "zone"
	NamesOfRegions      NameKind = "region"
)

// valuesOf are the members of a closed set.
func valuesOf[T ~string](members ...T) []string {
	values := make([]string, 0, len(members))
	for _, m := range members {
		values = append(values, string(m))
	}
	return values
}

// Mode is how an attribute's expression is read.
type Mode uint8

// The modes.
const (
	ModeValue    Mode = iota // evaluated, references allowed
	ModeShape                // evaluated before there are instances: no count.index, no each
	ModeConstant             // evaluated without references
	ModeRaw                  // not evaluated: a type, or a list of addresses
	ModeSelf                 // evaluated, references allowed, to self too
)

// Attr finds an attribute by name.
func (t *BlockType) Attr(name string) *Attribute {
	for i := range t.Attrs {
		if t.Attrs[i].Name == name {
			return &t.Attrs[i]
		}
	}
	return nil
}

// Variants returns the block types of a name that may stand in t.
func (t *BlockType) Variants(name string) []*BlockType {
	var found []*BlockType
	for _, b := range t.Blocks {
		if b.Name == name {
			found = append(found, b)
		}
	}
	return found
}

// AttrNames returns the names of the attributes.
func (t *BlockType) AttrNames() []string {
	names := make([]string, 0, len(t.Attrs))
	for _, a := range t.Attrs {
		names = append(names, a.Name)
	}
	return names
}

// BlockNames returns the types of the blocks in it.
func (t *BlockType) BlockNames() []string {
	names := make([]string, 0, len(t.Blocks))
	for _, b := range t.Blocks {
		names = append(names, b.Name)
	}
	return names
}

// Root returns the root of the table: what may stand in a file.
func Root() *BlockType {
	root := &BlockType{
		Name: "the configuration",
		Blocks: []*BlockType{
			frayType(),
			variableType(),
			{Name: "locals", Doc: "names for expressions: local.NAME", Repeated: true, Open: true},
			localProviderType(),
			gcpProviderType(),
			rayProviderType(),
			namespaceType(),
			ReservationType(),
			jobGroupType(),
			JobType(),
			actorServiceType(),
			notificationType(),
			{
				Name: "controller",
				Doc:  "where fray watch runs; without it, wherever it is started",
				Attrs: []Attribute{
					{Name: "provider", Type: "string", Values: valuesOf(schema.ProviderNames()...), Default: "the only declared provider, else local", Doc: "local, gcp or ray"},
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
	root.Blocks = append(root.Blocks, dataTypes()...)
	return root
}

func frayType() *BlockType {
	return &BlockType{
		Name: "fray",
		Doc:  "settings of the tool",
		Attrs: []Attribute{
			{Name: "required_version", Type: "string", Doc: `versions of fray that may run this, such as "~> 0.1"`, Mode: ModeConstant},
		},
		Blocks: []*BlockType{
			{
				Name: "state", Variant: string(schema.BackendLocal), Label: "BACKEND",
				Doc: "keep the state in a directory",
				Attrs: []Attribute{
					{Name: "path", Type: "string", Default: ".fray", Doc: "the directory, relative to the configuration", Mode: ModeConstant},
				},
			},
			{
				Name: "state", Variant: string(schema.BackendGCS), Label: "BACKEND",
				Doc: "keep the state in a Cloud Storage bucket",
				Attrs: []Attribute{
					{Name: "bucket", Type: "string", Required: true, Doc: "the bucket, without gs://", Mode: ModeConstant},
					{Name: "prefix", Type: "string", Default: "the bucket's root", Doc: "of the objects of this stack", Mode: ModeConstant},
					{
						Name: "kms_key", Type: "string", Default: "the bucket's", Mode: ModeConstant,
						Doc: "Cloud KMS key with which Cloud Storage encrypts what is written: projects/P/locations/L/keyRings/R/cryptoKeys/K",
					},
				},
			},
			{
				Name: "encryption",
				Doc:  "encrypt the state and saved plans before they are written; one of recipients and kms_key",
				Attrs: []Attribute{
					{Name: "recipients", Type: "list of strings", Doc: "age or SSH public keys of the users who may read; an empty list turns encryption off", Mode: ModeConstant},
					{Name: "kms_key", Type: "string", Doc: "gcp-kms://projects/… of a Cloud KMS key, or file:///… of a key file", Mode: ModeConstant},
				},
			},
		},
	}
}

func variableType() *BlockType {
	return &BlockType{
		Name: "variable", Label: "NAME", Repeated: true,
		Doc: "a value given from outside: var.NAME",
		Attrs: []Attribute{
			{Name: "type", Type: "type", Default: "any", Doc: "such as string, list(number), object({ a = optional(string, \"x\") })", Mode: ModeRaw},
			{Name: "default", Type: "value of the type", Doc: "the value when none is given; without it, one must be", Mode: ModeConstant},
			{Name: "description", Type: "string", Doc: "for people", Mode: ModeConstant},
			{Name: "sensitive", Type: "bool", Default: "false", Doc: "hide the value wherever it flows", Mode: ModeConstant},
			{Name: "nullable", Type: "bool", Default: "true", Doc: "whether null is a value; if not, null means the default", Mode: ModeConstant},
			{Name: "ephemeral", Type: "bool", Default: "false", Doc: "never kept: the value may stand in conditions and data blocks, and in nothing that is recorded", Mode: ModeConstant},
		},
		Blocks: []*BlockType{ConditionType("validation", "a condition that the value must meet")},
	}
}

func localProviderType() *BlockType {
	return &BlockType{
		Name: "provider", Variant: string(schema.ProviderLocal), Label: "PROVIDER",
		Doc: "slices of processes on this machine",
		Attrs: []Attribute{
			{Name: "cpu", Type: "number", Default: "no limit", Doc: "cores that all slices together may use"},
			{Name: "memory", Type: "size", Default: "no limit", Doc: "memory that all slices together may use"},
			{Name: "slices", Type: "number", Default: "no limit", Doc: "slices at once"},
		},
		Blocks: []*BlockType{{
			Name: "gpu", Doc: "the GPUs of this machine, which its jobs take in turns; without it each job gets as many as it asks for, and no job waits",
			Attrs: []Attribute{
				{Name: "type", Type: "string", Names: NamesOfGPUTypes, Default: "any", Doc: "GPU type, such as h100: jobs that ask for another are rejected"},
				{Name: "count", Type: "number", Required: true, Doc: "how many all slices together may use"},
			},
		}},
	}
}

// ReservationType is the type of reservation blocks.
func ReservationType() *BlockType {
	end := func(name, doc string) *BlockType {
		return &BlockType{
			Name: name, Doc: doc,
			Attrs: []Attribute{
				{Name: "tpu", Type: "string", Names: NamesOfTPUTypes, Doc: "TPU type of each slice, such as v5litepod-16"},
				{Name: "cpu", Type: "number", Doc: "cores of each slice; not together with tpu"},
				{Name: "memory", Type: "size", Doc: "of each slice; not together with tpu"},
				{Name: "disk", Type: "size", Doc: "of each slice; not together with tpu"},
				{Name: "slices", Type: "number", Default: "1", Doc: "how many"},
			},
			Blocks: []*BlockType{gpuType()},
		}
	}
	t := &BlockType{
		Name: "reservation", Label: "NAME", Repeated: true,
		Doc: "a pool of slices that jobs may draw from",
		Attrs: []Attribute{
			{Name: "provider", Type: "string", Values: valuesOf(schema.ProviderNames()...), Default: "the only declared provider, else local", Doc: "local, gcp or ray"},
			{Name: "priority", Type: "number", Default: "0", Doc: "the higher one gets capacity first, where a limit or quota is too small for all"},
			{Name: "ttl", Type: "duration", Default: "no end", Doc: "how long the pool is held since it was made or last changed"},
			{Name: "idle_timeout", Type: "duration", Default: "5m", Doc: "how long a slice beyond min may idle before it is released"},
			{Name: "growth", Type: "string", Values: valuesOf(schema.GrowthDemand, schema.GrowthOffer), Default: "demand", Doc: "demand: grow for jobs that wait; offer: keep one slice more than jobs hold, up to max"},
			{Name: "namespace", Type: "reference", Doc: "namespace.NAME: jobs launched there draw from it without naming it, where they ask for its shape"},
			{Name: "preemptible", Type: "bool", Default: "true for tpu and gpu, else false", Doc: "whether its slices may be taken away"},
			{Name: "zones", Type: "list of strings", Names: NamesOfZones, Default: "the provider's", Doc: "in order of preference"},
			{Name: "regions", Type: "list of strings", Names: NamesOfRegions, Doc: "to choose zones from"},
		},
		Blocks: []*BlockType{
			end("min", "what is held always; none by default"),
			end("max", "what may be held at most, min by default"),
			lifecycleType(true),
		},
	}
	t.Attrs = append(t.Attrs, SliceAttributes()...)
	t.Attrs = append(t.Attrs, CloudAttributes(TheProviders)...)
	return t
}

func outputType() *BlockType {
	return &BlockType{
		Name: "output", Label: "NAME", Repeated: true,
		Doc: "a value shown after apply",
		Attrs: []Attribute{
			{Name: "value", Type: "any", Required: true, Doc: "may be known only after apply"},
			{Name: "description", Type: "string", Doc: "for people", Mode: ModeConstant},
			{Name: "sensitive", Type: "bool", Default: "false", Doc: "hide the value; needed where a sensitive value flows in", Mode: ModeConstant},
			{Name: "ephemeral", Type: "bool", Default: "false", Doc: "of a module: hand on an ephemeral value", Mode: ModeConstant},
			dependsOnAttribute(),
		},
		Blocks: []*BlockType{ConditionType("precondition", "must hold for the value to be handed out")},
	}
}
