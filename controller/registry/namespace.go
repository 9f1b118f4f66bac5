package registry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// space is the index of one namespace: its endpoints by name, and the watchers of
// names. The cost of a change grows with the watchers of its name alone.
type space struct {
	byName map[string][]*Endpoint // the oldest first
	names  []string               // sorted

	exact    map[string]map[*Watcher]struct{}
	prefixes map[string]map[*Watcher]struct{}
}

func newSpace() *space {
	return &space{
		byName: map[string][]*Endpoint{},
		exact:  map[string]map[*Watcher]struct{}{}, prefixes: map[string]map[*Watcher]struct{}{},
	}
}

func compareIDs(a, b *Endpoint) int { return cmp.Compare(a.ID, b.ID) }

func (s *space) insert(e *Endpoint) {
	if at, found := slices.BinarySearch(s.names, e.Name); !found {
		s.names = slices.Insert(s.names, at, e.Name)
	}
	list := s.byName[e.Name]
	at, _ := slices.BinarySearchFunc(list, e, byAge)
	// Lists are copied, so that readers may keep what they were given.
	s.byName[e.Name] = slices.Insert(slices.Clone(list), at, e)
}

func (s *space) remove(e *Endpoint) {
	list := slices.DeleteFunc(slices.Clone(s.byName[e.Name]), func(o *Endpoint) bool { return o.ID == e.ID })
	if len(list) > 0 {
		s.byName[e.Name] = list
		return
	}
	delete(s.byName, e.Name)
	if at, found := slices.BinarySearch(s.names, e.Name); found {
		s.names = slices.Delete(s.names, at, at+1)
	}
}

func (s *space) swap(old, next *Endpoint) {
	list := slices.Clone(s.byName[old.Name])
	if i := slices.Index(list, old); i >= 0 {
		list[i] = next
	}
	s.byName[old.Name] = list
}

// list are the endpoints whose names begin with a prefix, by name, the oldest first.
func (s *space) list(prefix string) []*Endpoint {
	var found []*Endpoint
	at, _ := slices.BinarySearch(s.names, prefix)
	for _, name := range s.names[at:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		found = append(found, s.byName[name]...)
	}
	return found
}

// suggestionWindow bounds how many names are compared: clients that wait for a name
// to appear ask often.
const suggestionWindow = 200

// suggestions are up to three names that a misspelt one may have meant.
func (s *space) suggestions(name string) []string {
	at, _ := slices.BinarySearch(s.names, name)
	candidates := slices.Clone(s.names[max(0, at-suggestionWindow/2):min(len(s.names), at+suggestionWindow/2)])
	var found []string
	for len(found) < 3 {
		nearest := schema.Nearest(name, candidates)
		if nearest == "" {
			break
		}
		found = append(found, nearest)
		candidates = slices.DeleteFunc(candidates, func(c string) bool { return c == nearest })
	}
	return found
}

// seenBy calls f with each watcher of a name.
func (s *space) seenBy(name string, f func(*Watcher)) {
	for w := range s.exact[name] {
		f(w)
	}
	if len(s.prefixes) == 0 {
		return
	}
	for n := 0; n <= len(name); n++ {
		for w := range s.prefixes[name[:n]] {
			f(w)
		}
	}
}
