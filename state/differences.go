package state

import "reflect"

// Differences reports the entries of two maps of records that differ: was is nil for one that
// was added, is for one that was removed. Records never change in place, so that two that are
// the same value are equal. It costs nothing where both are the same map.
func Differences[K comparable, V any](was, is map[K]*V, report func(key K, was, is *V)) {
	if reflect.ValueOf(was).UnsafePointer() == reflect.ValueOf(is).UnsafePointer() {
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
