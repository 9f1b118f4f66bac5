package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/state/checksum"
)

// Errors of Decode, to be tested with errors.Is.
var (
	// ErrNewer: a newer fray wrote the document, in a format this one does not
	// know, or with members that it does not know.
	ErrNewer = errors.New("the state was written by a newer fray")
	// ErrDamaged: the document is not one, not whole, or not what was written.
	ErrDamaged = errors.New("the state is damaged and was left as it is; put back an older one " +
		"(fray state history, fray state rollback), or make it again from what runs (fray state rebuild)")
	// ErrEncrypted: the document is one of package keyring.
	ErrEncrypted = errors.New("the state is encrypted and no key was given: name a file with an identity " +
		"that may read it in FRAY_AGE_IDENTITY, or ask for access to the key that it was encrypted with")
)

// Names of members that say how to read the others.
const (
	encryptedName = "fray_encrypted"
	versionName   = "format_version"
	writerName    = "fray_version"
)

// indentLimit is the size up to which a document is indented, for people who open
// the file. A larger one is written every second: in one line, and compressed.
const indentLimit = 1 << 20

// Encode writes a document as it is stored: as Text does, and compressed with zstd
// if it is large. A secret in clear is an error.
func Encode(d Document) ([]byte, error) {
	text, err := Text(d)
	if err != nil || len(text) <= indentLimit {
		return text, err
	}
	return compress(text)
}

// Text writes a document as JSON, in the present format, which ends with its
// checksum.
func Text(d Document) ([]byte, error) {
	d.FormatVersion = FormatVersion
	data, err := encode(&d)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if len(data) <= indentLimit {
		if err := (*jsontext.Value)(&data).Indent(jsontext.WithIndent(" "), writeOptions()); err != nil {
			return nil, fmt.Errorf("indent state: %w", err)
		}
	}
	if data, err = checksum.Append(data); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return data, nil
}

// Decode reads what Encode or Text wrote, of this version or version 1. A document
// whose content changed since is an ErrDamaged; so is one of version 1, which has no
// checksum, with members that were none of it. A part of a document is never read
// alone.
func Decode(data []byte) (Document, error) {
	d, _, err := present().decode(data)
	return d, err
}

// DecodeEdited is Decode for a document that people may have edited, and which
// then is not what its checksum is of: intact is false. What it does not know
// is an error all the same.
func DecodeEdited(data []byte) (d Document, intact bool, err error) {
	c := present()
	c.edited = true
	return c.decode(data)
}

// present reads and writes the present version.
func present() codec { return codec{version: FormatVersion, upgrades: upgrades()} }

// firstChecked is the first version of a document that ends with a checksum.
const firstChecked = 2

// codec reads one version and, by upgrades, older ones.
type codec struct {
	version  int
	upgrades []upgrade
	edited   bool // the checksum need not be that of the document
}

// decode also reports whether the document is what its checksum is of.
func (c codec) decode(data []byte) (d Document, intact bool, err error) {
	text, err := decompress(data)
	if err != nil {
		return Document{}, false, damaged(data, err)
	}
	data = text
	document, standing, err := c.split(data)
	if err != nil {
		return Document{}, false, err
	}
	intact = standing == checksum.Valid
	d, err = decode(document, readOptions(intact))
	if err == nil && d.Lineage == "" {
		err = errors.New("it has no lineage")
	}
	if err == nil {
		err = d.compact()
	}
	switch {
	case err == nil:
		return d, intact, nil
	case intact && errors.Is(err, jsonv2.ErrUnknownName):
		return Document{}, intact, unknownMember(document, err)
	default:
		return Document{}, intact, damaged(data, err)
	}
}

// split returns the parts of a document in the form of c.version.
func (c codec) split(data []byte) (document parts, standing checksum.Standing, err error) {
	if firstName(data) == encryptedName {
		return nil, standing, ErrEncrypted
	}
	err = together(
		func() error { standing = checksum.Check(data); return nil },
		func() (err error) { document, err = splitObject(data); return err },
	)
	if err != nil {
		return nil, standing, damaged(data, err)
	}
	document, err = c.accept(data, document, standing)
	return document, standing, err
}

// accept brings the parts of a document into the form of c.version.
func (c codec) accept(data []byte, document parts, standing checksum.Standing) (parts, error) {
	var version int
	if raw, ok := document[versionName]; !ok {
		return nil, damaged(data, errors.New("it has no format_version"))
	} else if err := jsonv2.Unmarshal(raw, &version); err != nil {
		return nil, damaged(data, fmt.Errorf("format_version: %w", err))
	}
	switch {
	case standing == checksum.Wrong && !c.edited:
		return nil, damaged(data, errChanged)
	case version > c.version:
		return nil, newer(document, version, c.version)
	case version < 1:
		return nil, damaged(data, fmt.Errorf("there is no format_version %d", version))
	case version >= firstChecked && standing == checksum.Missing && !c.edited:
		return nil, damaged(data, errUnchecked)
	}
	if version >= firstChecked {
		delete(document, checksum.Member)
	}
	if err := c.upgrade(document, version); err != nil {
		return nil, damaged(data, fmt.Errorf("upgrade from format_version %d: %w", version, err))
	}
	return document, nil
}

// upgrade brings a document from a version to the codec's.
func (c codec) upgrade(document parts, version int) error {
	for version < c.version {
		i := slices.IndexFunc(c.upgrades, func(u upgrade) bool { return u.from == version })
		if i < 0 {
			return errUnreleased
		}
		if err := c.upgrades[i].change(document); err != nil {
			return err
		}
		version = c.upgrades[i].to
	}
	document[versionName] = strconv.AppendInt(nil, int64(c.version), 10)
	return nil
}

// check refuses documents that break what others rely on.
func (d *Document) check() error {
	if d.Journal != nil && (d.Journal.ID == "" || d.Journal.Slots < 1) {
		return errors.New("its journal has no id or no slots")
	}
	for addr, r := range d.Resources {
		specs := 0
		for _, set := range []bool{r.Namespace != nil, r.Reservation != nil, r.Group != nil, r.Notification != nil} {
			if set {
				specs++
			}
		}
		if addr.IsZero() || specs != 1 {
			return fmt.Errorf("resource %q has %d specs", addr, specs)
		}
	}
	for name, s := range d.Slices {
		if s == nil || s.Spec.Name != name {
			return fmt.Errorf("slice %q is empty or has another name", name)
		}
	}
	for addr, j := range d.Jobs {
		if addr.IsZero() || j == nil || j.Spec == nil {
			return fmt.Errorf("job %q is empty", addr)
		}
	}
	return nil
}

// compact removes the indentation that Encode gave to values.
func (d *Document) compact() error {
	for name, o := range d.Outputs {
		if o.Value == nil {
			continue
		}
		var b bytes.Buffer
		if err := json.Compact(&b, o.Value); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
		o.Value = b.Bytes()
		d.Outputs[name] = o
	}
	return nil
}

// Reasons of an ErrDamaged.
var (
	errUnreleased = errors.New("only builds from before the first release wrote it")
	errChanged    = errors.New("it is not what was written, since its checksum is of another content; " +
		"if it was edited by hand, fray state push FILE gives it a new checksum")
	errUnchecked = errors.New("it has no checksum at its end; " +
		"if it was edited by hand, fray state push FILE gives it a new one")
)

// unknownMember refuses a document that is as it was written, and has members
// that this fray knows nothing of: what they mean must not be passed over.
func unknownMember(document parts, err error) error {
	by, writer := "another fray than this one", ""
	if jsonv2.Unmarshal(document[writerName], &writer) == nil && writer != "" {
		by = "fray " + writer
	}
	return fmt.Errorf("%w: it is whole, and %s put something into it that this fray does not know (%w); use the fray that wrote it, or a newer one", ErrNewer, by, err)
}

// newer refuses a document of which nothing but the version is known.
func newer(document parts, version, known int) error {
	by, writer := "a newer fray", ""
	if jsonv2.Unmarshal(document[writerName], &writer) == nil && writer != "" {
		by = "fray " + writer + " or a newer one"
	}
	return fmt.Errorf("%w: its format_version is %d, and this fray knows up to %d; use %s", ErrNewer, version, known, by)
}

// damaged says where the document is damaged if the reason knows.
func damaged(data []byte, reason error) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	at := ""
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](reason); ok {
		read := data[:min(syntax.ByteOffset, int64(len(data)))]
		at = fmt.Sprintf("line %d: ", 1+bytes.Count(read, []byte("\n")))
	}
	if errors.Is(reason, io.EOF) || errors.Is(reason, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %sit ends too early", ErrDamaged, at)
	}
	return fmt.Errorf("%w: %s%w", ErrDamaged, at, reason)
}
