package wire

import (
	"io"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/internal/reclaim"
)

// GRPCCodec is gRPC's own codec of messages, but that large ones are decoded as
// [UnmarshalLarge] does.
type GRPCCodec struct {
	encoding.CodecV2        // gRPC's own
	memory           uint64 // that a message takes beside its payload
}

var _ encoding.CodecV2 = GRPCCodec{}

// NewGRPCCodec is a codec for messages of at most limit bytes.
func NewGRPCCodec(limit uint64) GRPCCodec {
	return GRPCCodec{CodecV2: encoding.GetCodecV2(grpcproto.Name), memory: limit / 4}
}

// Unmarshal decodes a message. Errors are *OversizeError and *MalformedError, or gRPC's.
func (c GRPCCodec) Unmarshal(data mem.BufferSlice, into any) error {
	m, ok := into.(proto.Message)
	size := data.Len()
	if !ok || size <= readBuffer {
		return c.CodecV2.Unmarshal(data, into)
	}
	reclaim.Before(uint64(2 * size)) // the library holds it in pieces
	whole := make([]byte, size)
	if _, err := io.ReadFull(data.Reader(), whole); err != nil {
		return err
	}
	return UnmarshalLarge(whole, m, c.memory)
}
