package state

import "reflect"

// pointers are the elements of a map of a document, which finds what differs in another
// map without a look-up by key for each: that takes ten times as long.
type pointers[K comparable, V any] struct {
	known map[*V]struct{}
	keyOf func(*V) K
	odd   int // elements whose key is not what keyOf returns; while there are any, look up
	last  comparison[K, V]
}

// comparison is what compare found last: a save asks for the same again.
type comparison[K comparable, V any] struct {
	was, now map[K]*V
	set      map[K]*V
	gone     []K
}

func newPointers[K comparable, V any](m map[K]*V, keyOf func(*V) K) pointers[K, V] {
	p := pointers[K, V]{known: make(map[*V]struct{}, len(m)), keyOf: keyOf}
	for key, v := range m {
		p.add(key, v)
	}
	return p
}

func (p *pointers[K, V]) add(key K, v *V) {
	p.known[v] = struct{}{}
	if p.keyOf(v) != key {
		p.odd++
	}
}

// compare returns the elements that are new or other ones, and the keys that are gone.
func (p *pointers[K, V]) compare(was, now map[K]*V) (set map[K]*V, gone []K) {
	if sameMap(was, now) {
		return nil, nil
	}
	if sameMap(was, p.last.was) && sameMap(now, p.last.now) {
		return p.last.set, p.last.gone
	}
	set, gone = p.difference(was, now)
	p.last = comparison[K, V]{was, now, set, gone}
	return set, gone
}

func (p *pointers[K, V]) difference(was, now map[K]*V) (set map[K]*V, gone []K) {
	kept := 0 // keys of was
	for key, v := range now {
		if p.odd == 0 {
			if _, known := p.known[v]; known && p.keyOf(v) == key {
				kept++
				continue
			}
		}
		before, there := was[key]
		if there {
			kept++
		}
		if there && before == v {
			continue
		}
		if set == nil {
			set = map[K]*V{}
		}
		set[key] = v
	}
	if kept == len(was) {
		return set, nil
	}
	for key := range was {
		if _, there := now[key]; !there {
			gone = append(gone, key)
		}
	}
	return set, gone
}

// advance takes in another map.
func (p *pointers[K, V]) advance(was, now map[K]*V) {
	if p.odd > 0 {
		*p = newPointers(now, p.keyOf)
		return
	}
	set, gone := p.compare(was, now)
	p.last = comparison[K, V]{}
	for _, key := range gone {
		delete(p.known, was[key])
	}
	for key := range set {
		if before, there := was[key]; there {
			delete(p.known, before)
		}
	}
	for key, v := range set { // one that another key had is deleted above
		p.add(key, v)
	}
}

func sameMap[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}
