package schema

import "slices"

// Repetition is how a block becomes instances.
type Repetition string

// The repetitions.
const (
	RepeatNone  Repetition = ""
	RepeatCount Repetition = "count" // the replicas of a service, too
	RepeatEach  Repetition = "for_each"
)

// Block is a block of the files that has an address, and which instances it has:
// of what is not declared any more it says why.
type Block struct {
	Repetition Repetition
	Attribute  string   // that says so: "count", "replicas" or "for_each"
	Instances  int      // how many
	Keys       []string // of for_each
}

// HasKey reports whether for_each has a key.
func (b Block) HasKey(key string) bool { return slices.Contains(b.Keys, key) }

// blocks records everything that is declared: jobs, groups, namespaces and
// reservations by base address, calls of modules by their path without a key.
func (e *evaluator) blocks(into map[string]Block) {
	for addr, decl := range e.decls.things {
		into[e.global(addr).String()] = decl.asBlock()
	}
	for name, decl := range e.decls.calls {
		into[joinModule(e.path, name, Key{})] = decl.asBlock()
	}
}

func (d *declaration) asBlock() Block {
	b := Block{Instances: len(d.instances)}
	switch d.repetition {
	case single:
		b.Instances = 1 // groups are not expanded
	case counted:
		b.Repetition, b.Attribute = RepeatCount, "count"
		if d.addr.Kind == KindActorService {
			b.Attribute = "replicas"
		}
	case keyed:
		b.Repetition, b.Attribute = RepeatEach, "for_each"
		b.Keys = make([]string, 0, len(d.instances))
		for _, i := range d.instances {
			if key, ok := i.key.Str(); ok {
				b.Keys = append(b.Keys, key)
			}
		}
	}
	return b
}

// ModuleStep is one module of the path of an address.
type ModuleStep struct {
	Base string // its path without its own key, "module.a[0].module.b"
	Key  Key
}

// ModulePath are the modules that an address stands in, the outer ones first.
func (a Address) ModulePath() []ModuleStep {
	steps, err := addressSteps(a.Module)
	if err != nil {
		return nil // in none
	}
	found := make([]ModuleStep, 0, len(steps))
	path := ""
	for _, step := range steps {
		found = append(found, ModuleStep{Base: joinModule(path, step.name, Key{}), Key: step.key})
		path = joinModule(path, step.name, step.key)
	}
	return found
}
