package state

import (
	"fmt"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// The long parts of a document are read into lists that have room for all their elements,
// as far as the first ones show how many there are: a list of 100,000 jobs that grows little
// by little is copied to several times its size.

// desiredForm is what a document asks for.
type desiredForm struct {
	*schema.Desired

	Jobs jobList `json:"jobs"`
}

// desired is what the form says.
func (f *desiredForm) desired() schema.Desired {
	var d schema.Desired
	if f.Desired != nil {
		d = *f.Desired
	}
	d.Jobs = f.Jobs
	return d
}

// jobList are the jobs of a desiredForm.
type jobList []schema.Job

var (
	_ jsonv2.UnmarshalerFrom = (*jobList)(nil)
	_ jsonv2.UnmarshalerFrom = (*records[string, *Slice])(nil)
)

// UnmarshalJSONFrom reads a list as package json does.
func (l *jobList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	begin, null, err := open[[]schema.Job](dec, '[')
	*l = nil
	if err != nil || null {
		return err
	}
	*l = jobList{}
	for dec.PeekKind() != ']' {
		if len(*l) == cap(*l) {
			*l = slices.Grow(*l, begin.more(dec, len(*l)))
		}
		*l = append(*l, schema.Job{})
		if err := jsonv2.UnmarshalDecode(dec, &(*l)[len(*l)-1]); err != nil {
			return err
		}
	}
	_, err = dec.ReadToken()
	return err
}

// record is an element of a map of a document.
type record[K comparable, V any] struct {
	key   K
	value V
}

// records are the elements of such a map in the order in which they are written.
type records[K comparable, V any] []record[K, V]

// UnmarshalJSONFrom reads an object.
func (r *records[K, V]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	begin, null, err := open[map[K]V](dec, '{')
	*r = nil
	if err != nil || null {
		return err
	}
	*r = records[K, V]{}
	for dec.PeekKind() != '}' {
		if len(*r) == cap(*r) {
			*r = slices.Grow(*r, begin.more(dec, len(*r)))
		}
		*r = append(*r, record[K, V]{})
		last := &(*r)[len(*r)-1]
		if err := jsonv2.UnmarshalDecode(dec, &last.key); err != nil {
			return err
		}
		if err := jsonv2.UnmarshalDecode(dec, &last.value); err != nil {
			return err
		}
	}
	_, err = dec.ReadToken()
	return err
}

// mapOf is the map of the records of a part, nil of none. Two of one key are an error.
func mapOf[K comparable, V, M any](part string, r records[K, V], value func(V) M) (map[K]M, error) {
	if r == nil {
		return nil, nil
	}
	m := make(map[K]M, len(r))
	for i := range r {
		m[r[i].key] = value(r[i].value)
		if len(m) <= i {
			return nil, fmt.Errorf("%s: duplicate object member name %q", part, fmt.Sprint(r[i].key))
		}
	}
	return m, nil
}

// elements is where the elements of a list or an object begin, in bytes.
type elements int64

// open reads the beginning of a list or an object that T is written as, or a null.
func open[T any](dec *jsontext.Decoder, kind jsontext.Kind) (begin elements, null bool, err error) {
	token, err := dec.ReadToken()
	if err != nil {
		return 0, false, err
	}
	if token.Kind() != kind && token.Kind() != 'n' {
		return 0, false, &jsonv2.SemanticError{JSONKind: token.Kind(), GoType: reflect.TypeFor[T]()}
	}
	return elements(dec.InputOffset()), token.Kind() == 'n', nil
}

const (
	fewElements = 64 // so many tell how long the others are
	mostGrowth  = 16 // by which a list grows at once, as the first elements may be short ones
)

// more is how many elements follow those that were read, if they are about as long.
func (e elements) more(dec *jsontext.Decoder, read int) int {
	if read < fewElements {
		return fewElements
	}
	each := max(1, (dec.InputOffset()-int64(e))/int64(read))
	more := int(int64(len(dec.UnreadBuffer()))/each) + read/fewElements + 1
	return min(more, mostGrowth*read)
}
