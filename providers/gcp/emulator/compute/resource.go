package compute

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"reflect"
	"strings"
	"sync/atomic"
	"time"
)

// linkRoot is what the service's own links begin with, wherever it is reached.
const linkRoot = "https://www.googleapis.com/compute/v1/"

// ids numbers resources that the model does not know.
type ids struct{ last atomic.Uint64 }

func newIDs() *ids {
	i := &ids{}
	i.last.Store(1 << 60)
	return i
}

// next is a number that no other resource has.
func (i *ids) next() uint64 { return i.last.Add(1) }

// timestamp is how the service writes a time.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// lastPart is a resource's name, of its link or of itself.
func lastPart(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// fingerprint changes when one of its parts does.
func fingerprint(parts ...string) string {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(part)))) // a hash takes everything
		_, _ = h.Write([]byte(part))
	}
	return base64.URLEncoding.EncodeToString(h.Sum(nil))
}

func fingerprintNumber(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return h.Sum64()
}

// fieldOf is the field of a resource that has a name in JSON; invalid where there is none.
func fieldOf(resource reflect.Value, name string) reflect.Value {
	for i := range resource.NumField() {
		field := resource.Type().Field(i)
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			return resource.Field(i)
		}
		if field.Anonymous {
			if found := fieldOf(resource.Field(i), name); found.IsValid() {
				return found
			}
		}
	}
	return reflect.Value{}
}

// setText sets a field if the resource has one of that name in JSON.
func setText(resource any, field, value string) {
	if f := fieldOf(reflect.ValueOf(resource).Elem(), field); f.IsValid() {
		f.SetString(value)
	}
}

// setNumber is setText of a number.
func setNumber(resource any, field string, value uint64) {
	if f := fieldOf(reflect.ValueOf(resource).Elem(), field); f.IsValid() {
		f.SetUint(value)
	}
}

func textOf(resource any, field string) string {
	return fieldOf(reflect.ValueOf(resource).Elem(), field).String()
}

// copyOf is a copy of a resource of which fields may be replaced.
func copyOf(resource any) any {
	copied := reflect.New(reflect.TypeOf(resource).Elem())
	copied.Elem().Set(reflect.ValueOf(resource).Elem())
	return copied.Interface()
}
