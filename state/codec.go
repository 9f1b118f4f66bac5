package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
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

// indentLimit is the size up to which a document is indented for the people
// who look into it. Nobody reads a larger one, and it is written every second.
const indentLimit = 1 << 20

// Encode writes a document as JSON, in the present format. A secret in clear
// is an error.
func Encode(d Document) ([]byte, error) {
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

// Decode reads what Encode wrote, of this version or an older one. A document
// that changed since, in whatever byte, is an ErrDamaged; so is one of an older
// version, which has no checksum, with members that were none of it. There is
// no reading what can be read of it.
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
const firstChecked = 3

// upgrade brings the top level of a document from one version to the next.
type upgrade func(document parts) error

// upgrades are those from version 1 to 2, from 2 to 3, and so on up to
// FormatVersion.
func upgrades() []upgrade {
	return []upgrade{
		// Version 1 wrote in full what version 2 may leave out.
		func(parts) error { return nil },
		// Version 3 ends with a checksum.
		func(parts) error { return nil },
	}
}

// codec reads one version and, by upgrades, every older one.
type codec struct {
	version  int
	upgrades []upgrade
	edited   bool // the checksum need not be that of the document
}

// decode also reports whether the document is what its checksum is of.
func (c codec) decode(data []byte) (d Document, intact bool, err error) {
	standing := checksum.Check(data)
	intact = standing == checksum.Valid
	document, err := c.split(data, standing)
	if err != nil {
		return Document{}, intact, err
	}
	d, err = decode(document, readOptions(intact))
	if err == nil {
		err = d.check()
	}
	if err == nil {
		d.fillIn()
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
func (c codec) split(data []byte, standing checksum.Standing) (parts, error) {
	if firstName(data) == encryptedName {
		return nil, ErrEncrypted
	}
	document, err := splitObject(data)
	if err != nil {
		return nil, damaged(data, err)
	}
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
	for ; version < c.version; version++ {
		if err := c.upgrades[version-1](document); err != nil {
			return nil, damaged(data, fmt.Errorf("upgrade from format_version %d: %w", version, err))
		}
	}
	document[versionName] = strconv.AppendInt(nil, int64(c.version), 10)
	return document, nil
}

// check refuses what others rely on not to be.
func (d *Document) check() error {
	if d.Lineage == "" {
		return errors.New("it has no lineage")
	}
	for addr, r := range d.Resources {
		specs := 0
		for _, set := range []bool{r.Namespace != nil, r.Reservation != nil, r.Group != nil} {
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

// fillIn adds what documents of former programs of this version left out: they
// recorded only the text of a call that failed.
func (d *Document) fillIn() {
	for _, s := range d.Slices {
		if s.Failed == "" && s.Error != "" {
			s.Failed = schema.ErrorUnavailable
		}
	}
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
	errChanged = errors.New("it is not what was written, since its checksum is of another content; " +
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
