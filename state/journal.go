package state

import (
	"errors"
	"fmt"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/state/checksum"
)

// Journal says, in a snapshot, where the changes since are: as entries, which are
// numbered from 1 and written in turn to a fixed number of objects.
type Journal struct {
	ID      string `json:"id"`      // random, of this journal
	Slots   int    `json:"slots"`   // how many objects it has
	Entries uint64 `json:"entries"` // how many of its entries the snapshot contains
	// WholeBelow is the size in bytes below which the state becomes one object again; 0: it
	// never does.
	WholeBelow int `json:"whole_below,omitempty"`
}

// Slot is the object that an entry is written to, from 0 on.
func (j *Journal) Slot(number uint64) int {
	return int((number - 1) % uint64(j.Slots))
}

// Entry is what one save changed.
type Entry struct {
	FormatVersion int    `json:"format_version"`
	FrayVersion   string `json:"fray_version"` // that wrote it
	Journal       string `json:"journal"`      // its ID
	Number        uint64 `json:"number"`       // from 1 on; 0 of one that only says that no former journal goes on
	Lineage       string `json:"lineage"`
	After         string `json:"after"` // nonce of the document that it changes
	// Last says that no entry follows: the next state is written whole. Such an entry changes
	// nothing, and the document that comes of it is the one before.
	Last bool `json:"last,omitempty"`

	// Of the document that comes of it.
	Serial uint64 `json:"serial"`
	Epoch  uint64 `json:"epoch"`
	Nonce  string `json:"nonce"`

	Changes
}

// compressAbove is the size in bytes above which an entry is compressed.
const compressAbove = 16 << 10

// EncodeEntry writes an entry as it is stored, with a checksum.
func EncodeEntry(e *Entry) ([]byte, error) {
	out := *e
	out.FormatVersion = FormatVersion
	data, err := jsonv2.Marshal(out, writeOptions())
	if err == nil {
		data, err = checksum.Append(data)
	}
	if err == nil && len(data) > compressAbove {
		data, err = compress(data)
	}
	if err != nil {
		return nil, fmt.Errorf("encode an entry of the state's journal: %w", err)
	}
	return data, nil
}

// DecodeEntry reads what EncodeEntry wrote, with the errors of Decode.
func DecodeEntry(data []byte) (*Entry, error) {
	text, err := decompress(data)
	if err != nil {
		return nil, damaged(data, err)
	}
	if firstName(text) == encryptedName {
		return nil, ErrEncrypted
	}
	object, standing := checksum.Cut(text)
	if standing != checksum.Valid {
		return nil, damaged(text, errEntryChanged)
	}
	var head struct {
		FormatVersion int    `json:"format_version"`
		FrayVersion   string `json:"fray_version"`
	}
	if err := jsonv2.Unmarshal(object, &head, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, damaged(text, err)
	}
	writer := parts{versionName: strconv.AppendInt(nil, int64(head.FormatVersion), 10), writerName: strconv.AppendQuote(nil, head.FrayVersion)}
	switch {
	case head.FormatVersion > FormatVersion:
		return nil, newer(writer, head.FormatVersion, FormatVersion)
	case head.FormatVersion < firstJournal:
		return nil, damaged(text, fmt.Errorf("there is no entry of format_version %d", head.FormatVersion))
	}
	var e Entry
	if err := jsonv2.Unmarshal(object, &e, readOptions(true)); err != nil {
		if errors.Is(err, jsonv2.ErrUnknownName) {
			return nil, unknownMember(writer, err)
		}
		return nil, damaged(text, err)
	}
	return &e, nil
}

// firstJournal is the first version of documents with a journal.
const firstJournal = 4

// Reasons of an ErrDamaged.
var (
	errEntryChanged = errors.New("it is not what was written, since its checksum is missing or of another content")
	errOtherPast    = errors.New("it does not continue the entry before it")
)

// Replayed is a document with the changes of the entries that follow it. It shares what
// they do not change with d, which stays as it is. An entry that does not follow is
// an ErrDamaged; done is how many entries precede it.
func Replayed(d *Document, entries []*Entry) (next *Document, done int, err error) {
	if len(entries) == 0 {
		return d, 0, nil
	}
	next = d.Clone()
	var respec bool
	for i, e := range entries {
		if e.After != next.Nonce || e.Lineage != next.Lineage {
			return nil, i, fmt.Errorf("%w: %w", ErrDamaged, errOtherPast)
		}
		if err := e.change(next); err != nil {
			return nil, i, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		next.FrayVersion, next.Serial, next.Epoch, next.Nonce = e.FrayVersion, e.Serial, e.Epoch, e.Nonce
		respec = respec || e.Desired != nil
	}
	if respec {
		next.shareSpecs()
	}
	if err := next.check(); err != nil {
		return nil, len(entries) - 1, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return next, len(entries), nil
}
