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
	byKey  map[Key]T
	keys   []Key // sorted
	values []T   // in the order of keys
}

func newIndex[T any]() index[T] { return index[T]{byKey: map[Key]T{}} }

func (x *index[T]) put(k Key, v T) {
	i, there := slices.BinarySearchFunc(x.keys, k, compareKeys)
	if !there {
		x.keys, x.values = slices.Insert(x.keys, i, k), slices.Insert(x.values, i, v)
	}
	x.byKey[k], x.values[i] = v, v
}

func (x *index[T]) remove(k Key) {
	if i, ok := slices.BinarySearchFunc(x.keys, k, compareKeys); ok {
		x.keys, x.values = slices.Delete(x.keys, i, i+1), slices.Delete(x.values, i, i+1)
		delete(x.byKey, k)
	}
}

// under are the values of a project and kind in one zone, or in all for "".
func (x *index[T]) under(project string, kind Kind, zone string) []T {
	low, _ := slices.BinarySearchFunc(x.keys, Key{Project: project, Kind: kind, Zone: zone}, compareKeys)
	keys := x.keys[low:]
	end := slices.IndexFunc(keys, func(k Key) bool {
		return k.Project != project || k.Kind != kind || zone != "" && k.Zone != zone
	})
	if end < 0 {
		end = len(keys)
	}
	return x.values[low : low+end]
}
