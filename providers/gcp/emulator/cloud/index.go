package cloud

import (
	"cmp"
	"slices"
)

func compareKeys(a, b Key) int {
	return cmp.Or(
		cmp.Compare(a.Project, b.Project), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Name, b.Name),
	)
}

// index holds values by key and knows their order: project, kind, zone, name.
type index[T any] struct {
	byKey map[Key]T
	keys  []Key // sorted
}

func newIndex[T any]() index[T] { return index[T]{byKey: map[Key]T{}} }

func (x *index[T]) put(k Key, v T) {
	if _, ok := x.byKey[k]; !ok {
		i, _ := slices.BinarySearchFunc(x.keys, k, compareKeys)
		x.keys = slices.Insert(x.keys, i, k)
	}
	x.byKey[k] = v
}

func (x *index[T]) remove(k Key) {
	if i, ok := slices.BinarySearchFunc(x.keys, k, compareKeys); ok {
		x.keys = slices.Delete(x.keys, i, i+1)
		delete(x.byKey, k)
	}
}

// under are the keys of a project and kind in one zone, or in all for "".
func (x *index[T]) under(project string, kind Kind, zone string) []Key {
	low, _ := slices.BinarySearchFunc(x.keys, Key{Project: project, Kind: kind, Zone: zone}, compareKeys)
	keys := x.keys[low:]
	end := slices.IndexFunc(keys, func(k Key) bool {
		return k.Project != project || k.Kind != kind || zone != "" && k.Zone != zone
	})
	if end >= 0 {
		keys = keys[:end]
	}
	return keys
}
