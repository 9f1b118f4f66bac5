package state

import "reflect"

// pointers are the elements of a map of a document, which finds what differs in another
// map without a look-up by key for each: that takes several times as long.
type pointers[K comparable, V any] struct {
	known map[*V]K // one of the keys of each
	last  comparison[K, V]
}

// comparison is what compare found last: a save asks for the same again.
type comparison[K comparable, V any] struct {
	was, now map[K]*V
	set      map[K]*V
	gone     []K
}

func newPointers[K comparable, V any](m map[K]*V) pointers[K, V] {
	p := pointers[K, V]{known: make(map[*V]K, len(m))}
	for key, v := range m {
		p.known[v] = key
	}
	return p
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
		if former, known := p.known[v]; known && former == key {
			kept++
			continue
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
	set, gone := p.compare(was, now)
	p.last = comparison[K, V]{}
	for _, key := range gone {
		p.forget(key, was[key])
	}
	for key := range set {
		if before, there := was[key]; there {
			p.forget(key, before)
		}
	}
	for key, v := range set {
		p.known[v] = key
	}
}

func (p *pointers[K, V]) forget(key K, v *V) {
	if p.known[v] == key {
		delete(p.known, v)
	}
}

func sameMap[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}
