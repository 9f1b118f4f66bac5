package state

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// frameStart is how zstd begins its frames; no JSON does.
const frameStart = "\x28\xb5\x2f\xfd"

// compressWindow is how far back in a text the encoder looks, in bytes. It keeps about as much in
// memory for each text; a longer window makes a state no smaller.
const compressWindow = 512 << 10

// maxDocument is the longest document in bytes, before compression.
const maxDocument = 1 << 30

// Compress returns data that Decompress reads.
func Compress(data []byte) ([]byte, error) { return compress(data) }

// Decompress returns what Compress was given; data that is not compressed stays as it is.
func Decompress(data []byte) ([]byte, error) { return decompress(data) }

// IsCompressed reports whether data is compressed, as a large document is.
func IsCompressed(data []byte) bool { return bytes.HasPrefix(data, []byte(frameStart)) }

// compress prefers speed to size. The frame has no checksum, since the document has.
func compress(text []byte) ([]byte, error) {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(compressWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compress state: %w", err)
	}
	return encoder.EncodeAll(text, make([]byte, 0, len(text)/16)), nil
}

// decompress returns what is not compressed as it is.
func decompress(data []byte) ([]byte, error) {
	if !IsCompressed(data) {
		return data, nil
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDocument))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return text, nil
}
