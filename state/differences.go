package state

import "reflect"

// Differences reports the entries of two maps of records that differ: was is nil for one that
// was added, is for one that was removed. Records never change in place, so that two that are
// the same value are equal. It costs nothing where both are the same map.
func Differences[K comparable, V any](was, is map[K]*V, report func(key K, was, is *V)) {
	if SameMap(was, is) {
		return
	}
	kept := 0
	for key, now := range is {
		before, known := was[key]
		if known {
			kept++
		}
		if before != now {
			report(key, before, now)
		}
	}
	if kept == len(was) {
		return
	}
	for key, before := range was {
		if _, left := is[key]; !left {
			report(key, before, nil)
		}
	}
}

// SameMap reports whether two maps are one value, not only equal.
func SameMap[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// SameSlice reports whether two lists are one value, or both empty.
func SameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
