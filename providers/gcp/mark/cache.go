package mark

import (
	"maps"
	"sync"

	"github.com/fray-ml/fray/schema"
)

// Specs remembers the specs in the marks of the last inventory: decoding 2,000 of
// them in every Step would cost more than all the rest.
type Specs struct {
	mu   sync.Mutex
	last map[string]decoded // by zone and name
}

type decoded struct {
	marks Marks
	spec  schema.SliceSpec
}

// Reader starts a new listing.
func (s *Specs) Reader() *SpecReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &SpecReader{specs: s, old: s.last, now: make(map[string]decoded, len(s.last))}
}

// SpecReader reads the specs of one listing.
type SpecReader struct {
	specs    *Specs
	old, now map[string]decoded
}

// Read reads the spec of a resource, anew only if its marks have changed.
func (r *SpecReader) Read(m Marks) (schema.SliceSpec, error) {
	key := m.Zone + "/" + m.Name
	known, ok := r.old[key]
	if !ok || known.marks.Text != m.Text || !maps.Equal(known.marks.Labels, m.Labels) {
		spec, err := m.Spec()
		if err != nil {
			return spec, err
		}
		known = decoded{marks: m, spec: spec}
	}
	r.now[key] = known
	return known.spec, nil
}

// Done keeps what was read for the next listing, and nothing of before.
func (r *SpecReader) Done() {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	r.specs.last = r.now
}
