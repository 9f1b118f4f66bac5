// Package codec writes the arguments and results of actors' methods as bytes and
// reads them, as fray.rpc.codec does in Python; testdata/vectors.json holds
// the two together. docs/guides/actors.md has the table of what is carried.
//
// A value goes through a tree of few types: nil, bool, int64, uint64 (only above
// the largest int64), float64, string, []byte, []any, map[string]any, map[any]any
// (only if a key is an int: its keys are string, int64 and uint64), time.Time,
// NDArray and ActorRef. It is what `any` receives. lower.go makes it of a Go value,
// assign.go makes a Go value of it; msgpack_write.go, msgpack_read.go, json_write.go
// and json_read.go know the bytes.
//
// Bytes and arrays of at least OutOfBand bytes are not in the bytes that are
// returned but in buffers beside them, which alias the caller's memory: neither
// side copies them. So they must not be written to before the call is answered,
// and what is decoded shares the memory of the message.
//
// What it leaves out: pickle, which is between Python peers, and the limits on a
// message's size, which are the connection's. Start reading at EncodeArgs and
// DecodeArgs.
package codec
