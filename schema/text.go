package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// LeastSecret is the length in bytes below which a secret is not looked for in
// other texts: hiding every "1" would hide nothing and garble everything.
const LeastSecret = 4

// Text is a string that may be secret or not known yet. A command's words and
// an environment's values are Texts, so that a secret cannot reach the state, a
// plan, an assignment or a log by accident: one in clear refuses to be encoded,
// and every way of printing it hides it.
//
// A Text is in one of four forms: plain, secret (in clear, in memory only),
// sealed (encrypted with the stack's key) and unknown (until apply).
// It is comparable: equal sealed Texts have equal secrets, see [Sealer].
type Text struct {
	form    textForm
	value   string
	sources Sources // of a secret: what went into it
}

type textForm uint8

const (
	textPlain textForm = iota
	textSecret
	textSealed
	textUnknown
)

// Plain is a Text anyone may read.
func Plain(s string) Text { return Text{value: s} }

// Secret is a Text that must be sealed before it leaves this process.
func Secret(s string) Text { return Text{form: textSecret, value: s} }

// SecretFrom is a Secret that other sensitive values went into.
func SecretFrom(s string, sources Sources) Text {
	return Text{form: textSecret, value: s, sources: sources}
}

// UnknownText is a Text whose value is known only after apply.
func UnknownText() Text { return Text{form: textUnknown} }

// Sealer encrypts the secrets of one stack. Seal must be deterministic (equal
// secrets give equal results), so that a changed secret shows as a change
// without being read.
type Sealer interface {
	Seal(secret string) (string, error)
	Open(sealed string) (string, error)
}

// Resealer seals with the stack's present key what a former one has sealed.
type Resealer interface {
	Reseal(sealed string) (string, error)
}

// IsSensitive reports whether the value must not be shown.
func (t Text) IsSensitive() bool { return t.form == textSecret || t.form == textSealed }

// IsUnknown reports whether the value is known only after apply.
func (t Text) IsUnknown() bool { return t.form == textUnknown }

// Seal returns the Text with a secret in clear replaced by a sealed one.
func (t Text) Seal(s Sealer) (Text, error) {
	if t.form != textSecret {
		return t, nil
	}
	sealed, err := s.Seal(t.value)
	if err != nil {
		return Text{}, fmt.Errorf("seal secret: %w", err)
	}
	return Text{form: textSealed, value: sealed}, nil
}

// Reveal returns the value in clear, opening a sealed one with s. It is for the
// moment of use only: the agent about to start a task, `fray output -raw`.
func (t Text) Reveal(s Sealer) (string, error) {
	switch t.form {
	case textPlain, textSecret:
		return t.value, nil
	case textSealed:
		if s == nil {
			return "", errors.New("open secret: the stack's key is not at hand")
		}
		return s.Open(t.value)
	case textUnknown:
	}
	return "", errors.New("the value is known only after apply")
}

// String is the value for people: secrets and unknown values as a placeholder.
func (t Text) String() string {
	switch t.form {
	case textSecret, textSealed:
		return "(sensitive value)"
	case textUnknown:
		return "(known after apply)"
	case textPlain:
	}
	return t.value
}

// GoString keeps %#v from printing a secret.
func (t Text) GoString() string { return fmt.Sprintf("schema.Text(%q)", t.String()) }

type textObject struct {
	Sealed  string `json:"sealed,omitempty"`
	Unknown bool   `json:"unknown,omitzero"`
}

// MarshalJSON writes a plain Text as a string, a sealed one as
// {"sealed":"…"}, an unknown one as {"unknown":true}. A secret in clear is an error.
func (t Text) MarshalJSON() ([]byte, error) {
	switch t.form {
	case textPlain:
		return json.Marshal(t.value)
	case textSealed:
		return json.Marshal(textObject{Sealed: t.value})
	case textUnknown:
		return json.Marshal(textObject{Unknown: true})
	case textSecret:
	}
	return nil, errSecretInClear
}

var errSecretInClear = errors.New("a secret in clear was about to be written; seal it first")

// isBare reports whether a string is written in JSON as it is, as most are.
func isBare(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Text) UnmarshalJSON(data []byte) error {
	if n := len(data) - 1; n > 0 && data[0] == '"' && data[n] == '"' && isBare(data[1:n]) {
		*t = Plain(string(data[1:n]))
		return nil
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = Plain(s)
		return nil
	}
	var o textObject
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("want a string or a sealed value: %w", err)
	}
	return t.set(o)
}
