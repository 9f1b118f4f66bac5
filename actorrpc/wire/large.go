package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// What decoded messages take in bytes, from above.
const (
	messageSize = 256 // of any message of the protocol, without what it refers to
	pieceSize   = 64  // of an element of a list, with what the list grew by
	numberSize  = 16  // of a number of a list, likewise
)

// maxNesting is how deep the messages of one frame may nest.
const maxNesting = 10_000

// The numbers of fields in actor.proto.
const (
	frameCall, frameReply     = 2, 3
	callArgs, callBuffers     = 8, 9
	replyResult, replyBuffers = 3, 4
)

// UnmarshalLarge decodes a message of the protocol of which much is payload: the
// arguments, result and buffers of a call or a reply share the memory of data. What
// else is in it takes at most so many bytes of memory. Errors are *OversizeError and
// *MalformedError.
func UnmarshalLarge(data []byte, into proto.Message, memory uint64) error {
	w := weighing{left: memory}
	if !w.message(data, into.ProtoReflect().Descriptor(), 0) {
		return &OversizeError{Size: uint64(len(data)) + memory, Limit: memory}
	}
	return malformed(fill(data, into))
}

// fill decodes a message, and leaves the payload where it is.
func fill(data []byte, into proto.Message) error {
	switch m := into.(type) {
	case *Frame:
		number, inner := only(data)
		if number == frameCall {
			call := &Call{}
			m.Kind = &Frame_Call{Call: call}
			return fill(inner, call)
		}
		if number == frameReply {
			reply := &Reply{}
			m.Kind = &Frame_Reply{Reply: reply}
			return fill(inner, reply)
		}
	case *Call:
		rest, args, buffers := parted(data, callArgs, callBuffers)
		err := proto.Unmarshal(rest, m)
		m.Args, m.Buffers = args, buffers
		return err
	case *Reply:
		rest, result, buffers := parted(data, replyResult, replyBuffers)
		err := proto.Unmarshal(rest, m)
		m.Result, m.Buffers = result, buffers
		return err
	}
	return proto.Unmarshal(data, into)
}

// only is the one field that a message consists of, and its bytes; 0 if there are
// others, or it has no bytes.
func only(data []byte) (protowire.Number, []byte) {
	number, kind, n := protowire.ConsumeTag(data)
	if n <= 0 || kind != protowire.BytesType {
		return 0, nil
	}
	inner, size := protowire.ConsumeBytes(data[n:])
	if size < 0 || n+size != len(data) {
		return 0, nil
	}
	return number, inner
}

// parted takes a field of bytes and a list of bytes out of a message; what is no
// message remains in the rest.
func parted(data []byte, one, list protowire.Number) (rest, single []byte, several [][]byte) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n <= 0 {
			return append(rest, data...), single, several
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return append(rest, data...), single, several
		}
		field := data[:n+size]
		value, _ := protowire.ConsumeBytes(field[n:])
		switch {
		case kind == protowire.BytesType && number == one:
			single = slices.Clip(value)
		case kind == protowire.BytesType && number == list:
			several = append(several, slices.Clip(value))
		default:
			rest = append(rest, field...)
		}
		data = data[n+size:]
	}
	return rest, single, several
}

// weighing counts what a message takes when it is decoded, without the payload.
type weighing struct{ left uint64 }

func (w *weighing) take(n uint64) bool {
	if n > w.left {
		return false
	}
	w.left -= n
	return true
}

// message weighs one; false: it is more than is left. Bytes that are no message are
// left to the decoder.
func (w *weighing) message(data []byte, of protoreflect.MessageDescriptor, depth int) bool {
	if !w.take(messageSize) || depth > maxNesting {
		return false
	}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n <= 0 {
			return true
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return true
		}
		if !w.field(data[n:n+size], of.Fields().ByNumber(number), kind, depth) {
			return false
		}
		data = data[n+size:]
	}
	return true
}

func (w *weighing) field(value []byte, of protoreflect.FieldDescriptor, kind protowire.Type, depth int) bool {
	if of == nil { // kept as it is
		return w.take(pieceSize + uint64(len(value)))
	}
	if kind != protowire.BytesType {
		return !of.IsList() || w.take(numberSize)
	}
	inner, _ := protowire.ConsumeBytes(value)
	if of.Kind() == protoreflect.MessageKind {
		return w.take(pieceSize) && w.message(inner, of.Message(), depth+1)
	}
	if of.Kind() == protoreflect.BytesKind { // payload
		return w.take(pieceSize)
	}
	if of.Kind() == protoreflect.StringKind {
		return w.take(pieceSize + uint64(len(inner)))
	}
	// Numbers of a list in one piece, each of a byte at least.
	return w.take(numberSize * uint64(len(inner)))
}
