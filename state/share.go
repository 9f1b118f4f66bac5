package state

import (
	"fmt"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// maxDistance is in how many values a spec may differ from a common one that
// it is written like. Beyond, writing it in full costs little more.
const maxDistance = 6

// likeName is the member of a spec that holds the number of the common one
// that it patches; without it, it patches an empty one.
const likeName = "like"

// alone says that a spec is like no common one.
const alone = -1

// common is what the specs of one type have in common: the instances of a
// block differ in a few values, and only these are written for each.
type common[T any] struct {
	shape *shape
	specs []T
}

// write writes spec as a patch of the common one that like numbers. What
// preset puts in is known to the reader and so is not written.
func (c *common[T]) write(enc *jsontext.Encoder, spec *T, like int, preset func(*T)) error {
	var base T
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	if like != alone {
		base = c.specs[like]
		if err := enc.WriteToken(jsontext.String(likeName)); err != nil {
			return err
		}
		if err := enc.WriteToken(jsontext.Int(int64(like))); err != nil {
			return err
		}
	}
	preset(&base)
	if err := c.shape.write(enc, elem(spec), elem(&base)); err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}

// read reads into spec what write wrote.
func (c *common[T]) read(raw jsontext.Value, spec *T, preset func(*T), options jsonv2.Options) error {
	r := specReader[T]{common: c, spec: spec, preset: preset, like: alone}
	for {
		like := r.like
		if err := r.begin(); err != nil {
			return err
		}
		if err := jsonv2.Unmarshal(raw, &r, options); err != nil {
			return err
		}
		// Another tool may have sorted the members, so that it came too late.
		if r.like == like || r.inTime {
			return nil
		}
	}
}

// specReader reads a spec that is like a common one.
type specReader[T any] struct {
	common *common[T]
	spec   *T
	preset func(*T)
	like   int
	inTime bool // like was the first member
}

// begin makes the spec what is to be patched.
func (r *specReader[T]) begin() error {
	var base T
	if r.like != alone {
		if r.like < 0 || r.like >= len(r.common.specs) {
			return fmt.Errorf("it is like number %d of %d common specs", r.like, len(r.common.specs))
		}
		base = r.common.specs[r.like]
	}
	*r.spec = base
	r.preset(r.spec)
	return nil
}

// UnmarshalJSONFrom patches the spec.
func (r *specReader[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	first := true
	return eachMember(dec, func(name []byte) error {
		if string(name) != likeName {
			first = false
			return r.common.shape.readMember(dec, name, elem(r.spec))
		}
		if err := jsonv2.UnmarshalDecode(dec, &r.like); err != nil || !first {
			return err
		}
		r.inTime = true
		return r.begin()
	})
}

// sharing finds what specs have in common.
type sharing[T any] struct {
	shape  *shape
	found  []*T
	uses   []int
	last   int                      // index in found of what was last used
	byBase map[schema.Address][]int // indices in found, newest first
}

// maxVariants is how many kinds of specs of one base address are told apart.
const maxVariants = 4

func newSharing[T any](s *shape) *sharing[T] {
	return &sharing[T]{shape: s, last: alone, byBase: map[schema.Address][]int{}}
}

// like returns the index in found of a spec that is close to spec, which is
// spec itself if there is none before it. Specs of one base address are
// expected to be close.
func (s *sharing[T]) like(spec *T, base schema.Address) int {
	variants := s.byBase[base]
	near := func(i int) bool {
		return i != alone && s.shape.distance(elem(spec), elem(s.found[i])) <= maxDistance
	}
	i := s.last
	if n := slices.IndexFunc(variants, near); n >= 0 {
		i = variants[n]
	} else {
		if len(variants) > 0 || !near(i) {
			i = len(s.found)
			s.found, s.uses = append(s.found, spec), append(s.uses, 0)
		}
		s.byBase[base] = slices.Insert(variants, 0, i)[:min(len(variants)+1, maxVariants)]
	}
	s.last = i
	s.uses[i]++
	return i
}

// common returns the specs that others are like, without what strip empties,
// and the number of each that was found, which may be alone.
func (s *sharing[T]) common(strip func(*T)) (common[T], []int) {
	c, numbers := common[T]{shape: s.shape}, make([]int, len(s.found))
	for i, spec := range s.found {
		numbers[i] = alone
		if s.uses[i] > 1 {
			numbers[i] = len(c.specs)
			c.specs = append(c.specs, *spec)
			strip(&c.specs[numbers[i]])
		}
	}
	return c, numbers
}

func elem[T any](v *T) reflect.Value { return reflect.ValueOf(v).Elem() }
