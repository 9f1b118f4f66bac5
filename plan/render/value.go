package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/schema"
)

// value is an attribute's value, parsed as far as showing it needs.
type value struct {
	kind   valueKind
	text   string // scalar: as it is shown; string: itself
	raw    string // what equality is decided by; never shown
	secret bool   // a scalar that stands for one
	keys   []string
	items  []value // of a list, and of an object in the order of keys
}

type valueKind uint8

const (
	valueScalar valueKind = iota
	valueString
	valueList
	valueObject
)

// present reports whether there is a value: a plan that was read back from JSON
// may have null for none.
func present(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

// placeholder is how a Text without a value that may be shown is shown.
func placeholder(t schema.Text) value {
	return value{text: t.String(), secret: t.IsSensitive()}
}

// parse reads a JSON value. What is no JSON is shown as the text that it is.
func parse(raw json.RawMessage) value {
	raw = bytes.TrimSpace(raw)
	v := value{raw: string(raw)}
	if !present(raw) {
		v.text = "null"
		return v
	}
	switch raw[0] {
	case '"':
		if inner, ok := strings.CutSuffix(v.raw[1:], `"`); ok && isPlain(inner) {
			v.kind, v.text = valueString, inner
			return v
		}
		if json.Unmarshal(raw, &v.text) == nil {
			v.kind = valueString
			return v
		}
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) == nil {
			v.kind = valueList
			v.items = make([]value, len(items))
			for i := range items {
				v.items[i] = parse(items[i])
			}
			return v
		}
	case '{':
		if fields, ok := objectOf(raw); ok {
			return v.object(fields)
		}
	default:
		if json.Valid(raw) {
			v.text = string(raw)
			return v
		}
	}
	v.kind, v.text = valueString, string(raw)
	return v
}

// isPlain reports whether a string is written in quotes as it is, as most are.
func isPlain(s string) bool { return isPrintable(s) && !strings.ContainsAny(s, `"\\`) }

func objectOf(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(raw, &fields) == nil
}

// object fills in an object, or the placeholder for a Text that is none.
func (v value) object(fields map[string]json.RawMessage) value {
	if t, ok := hiddenText(fields); ok {
		v.text, v.secret = t.String(), t.IsSensitive()
		return v
	}
	v.kind = valueObject
	v.keys = slices.Sorted(maps.Keys(fields))
	v.items = make([]value, len(v.keys))
	for i, k := range v.keys {
		v.items[i] = parse(fields[k])
	}
	return v
}

// hiddenText returns the Text that an object with the one field "sealed" or
// "unknown" encodes. The sealed form must not be shown either: equal secrets
// have equal ones.
func hiddenText(fields map[string]json.RawMessage) (schema.Text, bool) {
	if len(fields) != 1 {
		return schema.Text{}, false
	}
	if _, ok := fields["sealed"]; ok {
		return schema.Secret(""), true
	}
	if bytes.Equal(fields["unknown"], []byte("true")) {
		return schema.UnknownText(), true
	}
	return schema.Text{}, false
}

func (v value) orAnyPort() value {
	if v.kind == valueScalar && v.text == "0" {
		v.text = "(any free port)"
	}
	return v
}

// inline is the value on one line, false if it has line breaks of its own.
func (v value) inline() (string, bool) {
	switch v.kind {
	case valueScalar:
		return v.text, true
	case valueString:
		if isPlain(v.text) {
			return `"` + v.text + `"`, true
		}
		return strconv.Quote(v.text), !isLong(v.text)
	case valueList, valueObject:
	}
	if len(v.items) == 0 {
		return map[valueKind]string{valueList: "[]", valueObject: "{}"}[v.kind], true
	}
	var b strings.Builder
	for i, item := range v.items {
		s, ok := item.inline()
		if !ok {
			return "", false
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if v.kind == valueObject {
			b.WriteString(keyName(v.keys[i]))
			b.WriteString(" = ")
		}
		b.WriteString(s)
	}
	if v.kind == valueObject {
		return "{ " + b.String() + " }", true
	}
	return "[" + b.String() + "]", true
}

// isLong reports whether a string has several lines; a newline at its end makes
// no second one.
func isLong(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	return strings.Contains(body, "\n") && strings.TrimSpace(body) != ""
}

// linesOf splits a string for showing it between <<-EOT and EOT.
func linesOf(s string) []string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return lines
}

// tail is what follows a value: end right behind it ("," or " -> null"), note
// behind its first line.
type tail struct{ end, note string }

type labeledValue struct {
	head string // "name = ", "" in a list
	value
}

// whole writes a value of which everything has the same mark.
func (p *printer) whole(level int, m mark, v labeledValue, t tail) {
	s, ok := v.inline()
	scalar := v.kind == valueScalar || v.kind == valueString || len(v.items) == 0
	if ok && (scalar || p.fits(level, v.head, s, t)) {
		p.row(level, m, v.head, s, p.end(t.end), p.note(t.note))
		return
	}
	opening, closing := "[", "]"
	switch v.kind {
	case valueScalar, valueString:
		p.row(level, m, v.head, "<<-EOT", p.note(t.note))
		for _, line := range linesOf(v.text) {
			p.textLine(level, markSame, line)
		}
		p.row(level, markSame, "EOT", p.end(t.end))
		return
	case valueObject:
		opening, closing = "{", "}"
	case valueList:
	}
	p.row(level, m, v.head, opening, p.note(t.note))
	heads := v.heads()
	for i, item := range v.items {
		end := ","
		if v.kind == valueObject {
			end = ""
		}
		p.whole(level+1, m, labeledValue{heads[i], item}, tail{end: end})
	}
	p.row(level, markSame, closing, p.end(t.end))
}

// heads are the "key = " of an object's items, aligned; empty for a list.
func (v value) heads() []string {
	heads := make([]string, len(v.items))
	pad := 0
	for _, k := range v.keys {
		pad = max(pad, utf8.RuneCountInString(keyName(k)))
	}
	for i, k := range v.keys {
		name := keyName(k)
		heads[i] = name + strings.Repeat(" ", pad-utf8.RuneCountInString(name)) + " = "
	}
	return heads
}
