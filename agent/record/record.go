package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fray-ml/fray/durable"
)

// A record is a small file that can be written when the disk is full: its blocks
// are allocated beforehand, and it is overwritten in place. It has two slots, of
// which a write replaces the older one, so that a crash in the middle of a write
// leaves the last version whole. Each slot is a line of JSON, padded with spaces.
//
// A file system that writes elsewhere what is overwritten (btrfs, ZFS) may still
// have no space; what must not be lost is then written again until it has.
const (
	slotSize  = 4096
	slotCount = 2
)

// recordVersion is what a slot holds.
type recordVersion struct {
	Turn  uint64          `json:"turn"` // the highest one counts
	Sum   string          `json:"sum"`  // SHA-256 of Value
	Value json.RawMessage `json:"value"`
}

var (
	// errUnwritten means that a record was reserved and never written. It is an
	// os.ErrNotExist to callers.
	errUnwritten = fmt.Errorf("reserved and not written: %w", os.ErrNotExist)
	// errDamaged means that a record's content is not what was written.
	errDamaged = errors.New("the file is damaged")
	// errTooLarge means that a value does not fit into a slot.
	errTooLarge = fmt.Errorf("a record has %d bytes at most", slotSize)
)

// Reserve allocates the blocks of records, unless they are allocated already.
func Reserve(paths ...string) error {
	for _, path := range paths {
		f, _, err := openRecord(path, os.O_RDONLY)
		if err == nil {
			err = f.Close()
		} else if errors.Is(err, os.ErrNotExist) {
			err = createRecord(path, nil)
		}
		if err != nil {
			return fmt.Errorf("reserve %s: %w", path, err)
		}
	}
	return nil
}

// Write replaces the value of a record; after a crash it is the old or the
// new one. A record that is not there yet, or a file of an older agent, is
// replaced by a new one.
func Write(path string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, content, err := openRecord(path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errDamaged) {
		if err := createRecord(path, value); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	newest, at := newestVersion(content)
	slot, err := encodeSlot(newest.Turn+1, value)
	if err == nil {
		_, err = f.WriteAt(slot, int64((at+1)%slotCount*slotSize))
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Read reads the newest whole version of a record, or a file of an older
// agent. One that was reserved and never written is an os.ErrNotExist.
func Read(path string, v any) error {
	f, content, err := openRecord(path, os.O_RDONLY)
	if errors.Is(err, errDamaged) { // no record; agents before records wrote plain JSON
		if ReadJSON(path, v) == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	newest, at := newestVersion(content)
	switch {
	case at >= 0:
		err = json.Unmarshal(newest.Value, v)
	case len(bytes.TrimSpace(content)) == 0:
		err = errUnwritten
	default:
		err = errDamaged
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// openRecord opens a record and returns all that it holds. A file of another
// size is errDamaged.
func openRecord(path string, how int) (*os.File, []byte, error) {
	f, err := os.OpenFile(path, how, 0)
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(f)
	if err == nil && len(content) != slotCount*slotSize {
		err = errDamaged
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, content, nil
}

// newestVersion is the whole version of the highest turn and the number of its
// slot, -1 if there is none.
func newestVersion(content []byte) (recordVersion, int) {
	newest, at := recordVersion{}, -1
	for i := range slotCount {
		var found recordVersion
		if json.Unmarshal(content[i*slotSize:(i+1)*slotSize], &found) != nil || found.Sum != checksum(found.Value) {
			continue
		}
		if at < 0 || found.Turn > newest.Turn {
			newest, at = found, i
		}
	}
	return newest, at
}

func checksum(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}

// encodeSlot is a whole slot, empty where there is no value.
func encodeSlot(turn uint64, value []byte) ([]byte, error) {
	slot := bytes.Repeat([]byte(" "), slotSize)
	slot[slotSize-1] = '\n'
	if value == nil {
		return slot, nil
	}
	data, err := json.Marshal(recordVersion{Turn: turn, Sum: checksum(value), Value: value})
	if err != nil {
		return nil, err
	}
	if len(data) >= slotSize {
		return nil, errTooLarge
	}
	copy(slot, data)
	return slot, nil
}

// createRecord makes a record with a value, or nil for none yet, and replaces
// what has its name.
func createRecord(path string, value []byte) error {
	first, err := encodeSlot(1, value)
	if err != nil {
		return err
	}
	second, err := encodeSlot(0, nil)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(first, second...), 0o600)
}
