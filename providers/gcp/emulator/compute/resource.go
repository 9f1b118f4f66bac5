package compute

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
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

func setText(m proto.Message, field, value string) {
	setField(m, field, protoreflect.ValueOfString(value))
}

func setNumber(m proto.Message, field string, value uint64) {
	setField(m, field, protoreflect.ValueOfUint64(value))
}

// setField sets a field if the message has one of that JSON name.
func setField(m proto.Message, field string, value protoreflect.Value) {
	if f := m.ProtoReflect().Descriptor().Fields().ByJSONName(field); f != nil {
		m.ProtoReflect().Set(f, value)
	}
}

func textOf(m proto.Message, field string) string {
	f := m.ProtoReflect().Descriptor().Fields().ByJSONName(field)
	return m.ProtoReflect().Get(f).String()
}
