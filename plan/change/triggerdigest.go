package change

import (
	"github.com/fray-ml/fray/schema"
)

// TriggerDigests are what a configuration says of what triggers name, by trigger
// without a digest. What is not declared has none. A caller that gives declarations other
// addresses (plan/amend) brings records up to date with it: a declaration that has
// moved has not changed.
func TriggerDigests(desired *schema.Desired, triggers []schema.Trigger) map[schema.Trigger]schema.Digest {
	named := map[schema.Address]bool{}
	for _, t := range triggers {
		named[t.Addr] = true
	}
	declarations := declarationsNamed(desired, named)
	digests := map[schema.Trigger]schema.Digest{}
	for _, t := range triggers {
		for _, declaration := range declarations[t.Addr] {
			if declaration.addr == t.Addr {
				digests[schema.Trigger{Addr: t.Addr, Path: t.Path}] = digestOfAttrs(declaration.attrs(), t.Path)
			}
		}
	}
	return digests
}
