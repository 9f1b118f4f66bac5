package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/rl/journal"
)

// Journal is where a role writes what it acknowledges; *journal.Journal is one.
type Journal interface {
	Append(record []byte) journal.Position
	Rewrite(records [][]byte) journal.Position
	Wait(at journal.Position) error
	Size() int64
}

var _ Journal = (*journal.Journal)(nil)

// Recorder writes the commands that have changed a machine, for the role that has the machine's lock. Without a
// journal it does nothing.
type Recorder struct {
	Journal Journal
	Last    journal.Position
	Slack   int64 // so many bytes beyond twice what lives are replaced by a snapshot
	base    int64 // bytes of the last snapshot
}

// Add appends a record.
func (r *Recorder) Add(record []byte) {
	if r.Journal != nil {
		r.Last = r.Journal.Append(record)
	}
}

// IsLong reports whether a snapshot is due, if the state has so many bytes.
func (r *Recorder) IsLong(live int64) bool {
	return r.Journal != nil && r.Journal.Size() > r.Slack+2*max(live, r.base)
}

// Rewrite replaces all records by those of a snapshot.
func (r *Recorder) Rewrite(records [][]byte) {
	if r.Journal == nil {
		return
	}
	r.base = 0
	for _, record := range records {
		r.base += int64(len(record))
	}
	r.Last = r.Journal.Rewrite(records)
}

// Wait waits, without the machine's lock, until what was recorded up to a position is durable.
func (r *Recorder) Wait(at journal.Position) error {
	if r.Journal == nil {
		return nil
	}
	return r.Journal.Wait(at)
}

// The first byte of a record is its kind. The payloads of a snapshot follow it as they are, so that it is made without a
// copy of them.
const (
	recordCommand  = 'c' // a varint, so many bytes of JSON, and the payload of the command
	recordSnapshot = 's' // a varint, and the JSON of a state; so many records that follow are its payloads
)

// Error is a record of a journal that does not fit its role.
type Error struct {
	Number int
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("replay record %d of the journal: %v", e.Number, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Command is the record of a command with a payload.
func Command(command any, payload []byte) ([]byte, error) {
	text, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	out := make([]byte, 0, 1+binary.MaxVarintLen32+len(text)+len(payload))
	out = append(out, recordCommand)
	out = binary.AppendUvarint(out, uint64(len(text)))
	out = append(out, text...)
	return append(out, payload...), nil
}

// Snapshot is the records of a state with payloads, the first of which begins anew.
func Snapshot(state any, payloads [][]byte) ([][]byte, error) {
	text, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("record a snapshot: %w", err)
	}
	first := binary.AppendUvarint([]byte{recordSnapshot}, uint64(len(payloads)))
	return slices.Concat([][]byte{append(first, text...)}, payloads), nil
}

// Replay reads records: a state of type S with its payloads, commands of type C with theirs.
func Replay[S, C any](records [][]byte, restore func(S, [][]byte) error, apply func(C, []byte) error) error {
	for i := 0; i < len(records); i++ {
		record, at := records[i], i
		if len(record) == 0 {
			return &Error{Number: at, Err: journal.ErrDamaged}
		}
		var err error
		switch record[0] {
		case recordSnapshot:
			count, used := binary.Uvarint(record[1:])
			if used <= 0 || count > uint64(len(records)-1-i) {
				err = journal.ErrDamaged
				break
			}
			payloads := make([][]byte, count)
			for n := range payloads {
				i++
				payloads[n] = bytes.Clone(records[i]) // else each keeps the whole journal in memory
			}
			var state S
			if err = json.Unmarshal(record[1+used:], &state); err == nil {
				err = restore(state, payloads)
			}
		case recordCommand:
			size, used := binary.Uvarint(record[1:])
			if used <= 0 || size > uint64(len(record)-1-used) {
				err = journal.ErrDamaged
				break
			}
			text, payload := record[1+used:1+used+int(size)], bytes.Clone(record[1+used+int(size):])
			var command C
			if err = json.Unmarshal(text, &command); err == nil {
				err = apply(command, payload)
			}
		default:
			err = journal.ErrDamaged
		}
		if err != nil {
			return &Error{Number: at, Err: err}
		}
	}
	return nil
}
