package decode

import (
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/schema"
)

// blocks records the blocks of all declarations: jobs, groups, namespaces and
// reservations by base address, calls of modules by their path without a key.
func (e *Decoder) blocks(into map[string]schema.Block) {
	for addr, decl := range e.Decls.Addressed {
		if e.Canceled() {
			return
		}
		into[e.Global(addr).String()] = blockOf(decl)
	}
	for name, decl := range e.Decls.Calls {
		into[schema.JoinModule(e.Path, name, schema.Key{})] = blockOf(decl)
	}
}

func blockOf(d *configs.Declaration) schema.Block {
	b := schema.Block{Instances: len(d.Instances)}
	switch d.Repetition {
	case configs.Single:
		b.Instances = 1 // groups are not expanded
	case configs.Counted:
		b.Repetition, b.Attribute = schema.RepeatCount, "count"
		if d.Addr.Kind == schema.KindActorService {
			b.Attribute = "replicas"
		}
	case configs.Keyed:
		b.Repetition, b.Attribute = schema.RepeatEach, "for_each"
		b.Keys = make([]string, 0, len(d.Instances))
		for _, i := range d.Instances {
			if key, ok := i.Key.Str(); ok {
				b.Keys = append(b.Keys, key)
			}
		}
	}
	return b
}
