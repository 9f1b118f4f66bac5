package journal

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
)

// A chunk is the records of one commit: magic, length and CRC-32C of what follows (4 bytes each, little endian),
// then for each record its length as a varint and its bytes.
const (
	magic      = 0x314c4a52 // "RJL1"
	headerSize = 12
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func encode(records [][]byte) []byte {
	size := headerSize
	for _, record := range records {
		size += len(record) + binary.MaxVarintLen32
	}
	out := make([]byte, headerSize, size)
	for _, record := range records {
		out = binary.AppendUvarint(out, uint64(len(record)))
		out = append(out, record...)
	}
	binary.LittleEndian.PutUint32(out, magic)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-headerSize))
	binary.LittleEndian.PutUint32(out[8:], crc32.Checksum(out[headerSize:], castagnoli()))
	return out
}

// chunksOf are the records of a snapshot, in chunks of a bounded size.
func chunksOf(records [][]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for from := 0; from < len(records); {
			to, size := from, 0
			for to < len(records) && (to == from || size+len(records[to]) <= maxChunk) {
				size += len(records[to])
				to++
			}
			if !yield(encode(records[from:to])) {
				return
			}
			from = to
		}
	}
}

// decode reads the first chunk, and returns its records and its length in bytes; 0 is no whole chunk.
func decode(data []byte) (records [][]byte, length int) {
	if len(data) < headerSize || binary.LittleEndian.Uint32(data) != magic {
		return nil, 0
	}
	n := int(binary.LittleEndian.Uint32(data[4:]))
	if n > len(data)-headerSize {
		return nil, 0
	}
	body := data[headerSize : headerSize+n]
	if crc32.Checksum(body, castagnoli()) != binary.LittleEndian.Uint32(data[8:]) {
		return nil, 0
	}
	for len(body) > 0 {
		size, used := binary.Uvarint(body)
		if used <= 0 || size > uint64(len(body)-used) {
			return nil, 0
		}
		records = append(records, body[used:used+int(size)])
		body = body[used+int(size):]
	}
	return records, headerSize + n
}

// decodeAll reads chunks until one is not whole, and returns how many bytes those before it take. A torn chunk
// at the end was not acknowledged; a whole chunk behind a torn one is damage.
func decodeAll(data []byte) (records [][]byte, length int, err error) {
	for length < len(data) {
		more, n := decode(data[length:])
		if n == 0 {
			break
		}
		records = append(records, more...)
		length += n
	}
	for at := length + 1; at < len(data); at++ {
		if data[at] == magic&0xff {
			if _, n := decode(data[at:]); n > 0 {
				return records, length, ErrDamaged
			}
		}
	}
	return records, length, nil
}
