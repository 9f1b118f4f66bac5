package state

import (
	"hash/maphash"
	"unsafe"
)

// pointers are the elements of a map of a document, which finds what differs in another
// map without a look-up by key for each: that takes several times as long. What is compared of
// an element is small, so that it stays in the processor's cache.
type pointers[K comparable, V any] struct {
	seed  maphash.Seed
	marks map[*V]uint64 // of one of the keys of each
	keys  map[*V]K      // those keys: as long as they are kept, nothing else has their marks
	last  comparison[K, V]
}

// comparison is what compare found last: a save asks for the same again.
type comparison[K comparable, V any] struct {
	was, now map[K]*V
	set      map[K]*V
	gone     []K
}

func newPointers[K comparable, V any](m map[K]*V) pointers[K, V] {
	p := pointers[K, V]{seed: maphash.MakeSeed(), marks: make(map[*V]uint64, len(m)), keys: make(map[*V]K, len(m))}
	for key, v := range m {
		p.remember(key, v)
	}
	return p
}

// mark is the hash of a key as it lies in memory, with where its strings are rather than what
// they read: two of the same mark are equal, and equal ones mostly have the same.
func (p *pointers[K, V]) mark(key *K) uint64 {
	return maphash.Bytes(p.seed, unsafe.Slice((*byte)(unsafe.Pointer(key)), unsafe.Sizeof(*key)))
}

func (p *pointers[K, V]) remember(key K, v *V) { p.marks[v], p.keys[v] = p.mark(&key), key }

// compare returns the elements that are new or other ones, and the keys that are gone.
func (p *pointers[K, V]) compare(was, now map[K]*V) (set map[K]*V, gone []K) {
	if SameMap(was, now) {
		return nil, nil
	}
	if SameMap(was, p.last.was) && SameMap(now, p.last.now) {
		return p.last.set, p.last.gone
	}
	set, gone = p.difference(was, now)
	p.last = comparison[K, V]{was, now, set, gone}
	return set, gone
}

// expect has compare return what is known of two maps.
func (p *pointers[K, V]) expect(was, now map[K]*V, set map[K]*V, gone []K) {
	p.last = comparison[K, V]{was, now, set, gone}
}

func (p *pointers[K, V]) difference(was, now map[K]*V) (set map[K]*V, gone []K) {
	kept := 0 // keys of was
	for key, v := range now {
		if mark, known := p.marks[v]; known && mark == p.mark(&key) {
			kept++
			continue
		}
		before, there := was[key]
		if there {
			kept++
		}
		if there && before == v {
			p.remember(key, v)
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
		p.remember(key, v)
	}
}

func (p *pointers[K, V]) forget(key K, v *V) {
	if p.keys[v] == key {
		delete(p.marks, v)
		delete(p.keys, v)
	}
}
