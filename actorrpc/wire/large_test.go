package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A large message decodes as any other does, and its payload is not copied.
func TestUnmarshalLarge(t *testing.T) {
	payload, buffers := bytes.Repeat([]byte("p"), 100_000), [][]byte{bytes.Repeat([]byte("b"), 10_000), {}, []byte("c")}
	for name, want := range map[string]proto.Message{
		"call":   &Call{Actor: "a", Method: "m", Seq: 7, Args: payload, Buffers: buffers, BufferSizes: []uint64{1, 2}, Trace: "t"},
		"reply":  &Reply{Seq: 7, Result: payload, Buffers: buffers, Error: &Error{Message: "no", Cause: &Error{Near: []string{"x"}}}},
		"frame":  &Frame{Kind: &Frame_Call{Call: &Call{Actor: "a", Args: payload}}},
		"other":  &Frame{Kind: &Frame_Reply{Reply: &Reply{Seq: 1, Result: payload}}},
		"ping":   &Frame{Kind: &Frame_Ping{Ping: &Ping{Id: 4}}},
		"empty":  &Frame{},
		"listed": &ListActorsResponse{Actors: []*Actor{{Name: "a"}, {Name: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := proto.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got := want.ProtoReflect().New().Interface()
			if err := UnmarshalLarge(data, got, 1<<20); err != nil || !proto.Equal(got, want) {
				t.Errorf("got %v, %v", got, err)
			}
			if call, ok := got.(*Call); ok {
				clear(data)
				if bytes.ContainsRune(call.Args, 'p') {
					t.Error("the arguments were copied")
				}
			}
		})
	}
}

// What is dear to decode is refused before it is decoded.
func TestUnmarshalLargeRefuses(t *testing.T) {
	field := func(n protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	nested := []byte{}
	for range maxNesting + 1 {
		nested = field(10, nested)
	}
	for name, test := range map[string]struct {
		data []byte
		into proto.Message
	}{
		"empty messages": {bytes.Repeat([]byte{1<<3 | 2, 0}, 10_000), &ListMethodsResponse{}},
		"names":          {bytes.Repeat(field(7, []byte("n")), 20_000), &Error{}},
		"packed numbers": {field(10, make([]byte, 70_000)), &Call{}},
		"numbers":        {bytes.Repeat([]byte{10 << 3, 1}, 70_000), &Call{}},
		"buffers":        {bytes.Repeat([]byte{9<<3 | 2, 0}, 20_000), &Call{}},
		"unknown":        {field(1000, make([]byte, 1<<20)), &Call{}},
		"a long text":    {field(1, []byte(strings.Repeat("a", 1<<20))), &Call{}},
		"in a frame":     {field(3, field(6, bytes.Repeat(field(7, nil), 20_000))), &Frame{}},
		"nested":         {nested, &Error{}},
	} {
		t.Run(name, func(t *testing.T) {
			over := (*OversizeError)(nil)
			if err := UnmarshalLarge(test.data, test.into, 1<<20); !errors.As(err, &over) || over.Limit != 1<<20 {
				t.Errorf("got %v, want an OversizeError of 1 MiB", err)
			}
		})
	}
	malformed := (*MalformedError)(nil)
	if err := UnmarshalLarge([]byte{9<<3 | 2, 200}, &Call{}, 1<<20); !errors.As(err, &malformed) {
		t.Errorf("got %v, want a MalformedError", err)
	}
}
