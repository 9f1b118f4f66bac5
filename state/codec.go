package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Errors of Decode, to be tested with errors.Is.
var (
	// ErrNewer: a newer fray wrote the document, in a format this one does not know.
	ErrNewer = errors.New("the state was written by a newer fray")
	// ErrDamaged: the document is not one, or not whole.
	ErrDamaged = errors.New("the state is damaged and was left as it is; put back a copy of it " +
		"(a backup, or an older version of the object)")
)

// indentLimit is the size up to which a document is indented for the people
// who look into it. Nobody reads a larger one, and it is written every second.
const indentLimit = 1 << 20

// Encode writes a document as JSON, in the present format. A secret in clear
// is an error.
func Encode(d Document) ([]byte, error) {
	d.FormatVersion = FormatVersion
	var compact, indented bytes.Buffer
	encoder := json.NewEncoder(&compact)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if compact.Len() > indentLimit {
		return compact.Bytes(), nil
	}
	if err := json.Indent(&indented, compact.Bytes(), "", " "); err != nil {
		return nil, fmt.Errorf("indent state: %w", err)
	}
	return indented.Bytes(), nil
}

// Decode reads what Encode wrote, of this version or an older one. Fields that
// it does not know are dropped: a format in which they matter has a higher version.
func Decode(data []byte) (Document, error) {
	return codec{version: FormatVersion, upgrades: upgrades()}.decode(data)
}

// upgrade brings the top level of a document from one version to the next.
type upgrade func(fields map[string]json.RawMessage) error

// upgrades are those from version 1 to 2, from 2 to 3, and so on up to
// FormatVersion.
func upgrades() []upgrade { return nil }

// codec reads one version and, by upgrades, every older one.
type codec struct {
	version  int
	upgrades []upgrade
}

func (c codec) decode(data []byte) (Document, error) {
	version, err := formatVersion(data)
	if err != nil {
		return Document{}, damaged(data, err)
	}
	if version > c.version {
		return Document{}, newer(data, version, c.version)
	}
	if version < 1 {
		return Document{}, damaged(data, fmt.Errorf("there is no format_version %d", version))
	}
	if version < c.version {
		if data, err = c.upgrade(data, version); err != nil {
			return Document{}, damaged(data, err)
		}
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return Document{}, damaged(data, err)
	}
	if err := d.check(c.version); err != nil {
		return Document{}, damaged(data, err)
	}
	if err := d.compact(); err != nil {
		return Document{}, damaged(data, err)
	}
	return d, nil
}

// formatVersion reads the one field that says how to read the others. It is
// written first, so that this costs nothing.
func formatVersion(data []byte) (int, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil {
		return 0, err
	} else if start != json.Delim('{') {
		return 0, errors.New("it is no JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return 0, err
		}
		if name == "format_version" {
			var version int
			err := decoder.Decode(&version)
			return version, err
		}
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("it has no format_version")
}

// upgrade returns data itself beside an error.
func (c codec) upgrade(data []byte, version int) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return data, err
	}
	for ; version < c.version; version++ {
		if err := c.upgrades[version-1](fields); err != nil {
			return data, fmt.Errorf("upgrade from format_version %d: %w", version, err)
		}
	}
	fields["format_version"] = fmt.Append(nil, c.version)
	upgraded, err := json.Marshal(fields)
	if err != nil {
		return data, err
	}
	return upgraded, nil
}

// check refuses what others rely on not to be.
func (d *Document) check(version int) error {
	switch {
	case d.FormatVersion != version:
		return errors.New("it has two format_versions")
	case d.Lineage == "":
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

func newer(data []byte, version, known int) error {
	var writer struct {
		FrayVersion string `json:"fray_version"`
	}
	by := "a newer fray"
	if json.Unmarshal(data, &writer) == nil && writer.FrayVersion != "" {
		by = "fray " + writer.FrayVersion + " or a newer one"
	}
	return fmt.Errorf("%w: its format_version is %d, and this fray knows up to %d; use %s", ErrNewer, version, known, by)
}

// damaged says where the document is damaged if the reason knows.
func damaged(data []byte, reason error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](reason); ok {
		read := data[:min(syntax.Offset, int64(len(data)))]
		return fmt.Errorf("%w: line %d: %w", ErrDamaged, 1+bytes.Count(read, []byte("\n")), reason)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	if errors.Is(reason, io.EOF) || errors.Is(reason, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", ErrDamaged)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, reason)
}
