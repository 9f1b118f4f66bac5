package experiment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Tensorboard writes an event file: records of TFRecord, each an Event message.
type Tensorboard struct {
	mu   sync.Mutex
	file *os.File
}

// NewTensorboard begins an event file in a directory, which it makes. Each process of a run writes one of its own, whose name has
// the time and the host; TensorBoard reads all of a directory as one run.
func NewTensorboard(dir, host string, now time.Time) (*Tensorboard, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	name := fmt.Sprintf("events.out.tfevents.%d.%s.%d", now.Unix(), host, now.UnixNano())
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	t := &Tensorboard{file: file}
	version := protowire.AppendString(protowire.AppendTag(nil, eventFileVersion, protowire.BytesType), "brain.Event:2")
	return t, t.write(append(eventAt(now), version...))
}

// Numbers of the fields, by tensorflow's event.proto and summary.proto.
const (
	eventWallTime    = 1 // double, seconds since 1970
	eventStep        = 2 // int64
	eventFileVersion = 3 // string
	eventSummary     = 5 // Summary
	summaryValue     = 1 // repeated Value
	valueTag         = 1 // string
	valueSimple      = 2 // float
)

func eventAt(now time.Time) []byte {
	seconds := float64(now.UnixNano()) / float64(time.Second)
	return protowire.AppendFixed64(protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type), math.Float64bits(seconds))
}

// Log writes the metrics that are numbers.
func (t *Tensorboard) Log(r Record) error {
	var summary []byte
	for _, name := range slices.Sorted(maps.Keys(r.Data)) {
		number, ok := Number(r.Data[name])
		if !ok {
			continue
		}
		value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), name)
		value = protowire.AppendFixed32(protowire.AppendTag(value, valueSimple, protowire.Fixed32Type), math.Float32bits(float32(number)))
		summary = protowire.AppendBytes(protowire.AppendTag(summary, summaryValue, protowire.BytesType), value)
	}
	if summary == nil {
		return nil
	}
	event := protowire.AppendVarint(protowire.AppendTag(eventAt(r.Time), eventStep, protowire.VarintType), uint64(r.Step))
	return t.write(protowire.AppendBytes(protowire.AppendTag(event, eventSummary, protowire.BytesType), summary))
}

// masked is the checksum of TFRecord: CRC-32C, rotated right by 15 bits, plus a constant (tensorflow's
// core/lib/hash/crc32c.h).
func masked(data []byte) uint32 {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// write appends a record: length as uint64, its checksum, data, its checksum, all little endian.
func (t *Tensorboard) write(event []byte) error {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	record := binary.LittleEndian.AppendUint32(length, masked(length))
	record = append(record, event...)
	record = binary.LittleEndian.AppendUint32(record, masked(event))
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.file.Write(record); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

// Close closes the file.
func (t *Tensorboard) Close() error { return t.file.Close() }
