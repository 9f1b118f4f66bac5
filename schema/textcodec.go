package schema

import (
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MarshalJSONTo writes what MarshalJSON does. A state has a text for each argument of
// each job, and nearly all are plain ones.
func (t Text) MarshalJSONTo(enc *jsontext.Encoder) error {
	switch t.form {
	case textPlain:
		return enc.WriteToken(jsontext.String(t.value))
	case textSealed:
		return jsonv2.MarshalEncode(enc, textObject{Sealed: t.value})
	case textUnknown:
		return jsonv2.MarshalEncode(enc, textObject{Unknown: true})
	case textSecret:
	}
	return errSecretInClear
}

// UnmarshalJSONFrom reads what UnmarshalJSON does.
func (t *Text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err == nil {
			*t = Plain(token.String())
		}
		return err
	}
	var o textObject
	if err := jsonv2.UnmarshalDecode(dec, &o, jsonv2.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("want a string or a sealed value: %w", err)
	}
	return t.set(o)
}

// set takes what an object says.
func (t *Text) set(o textObject) error {
	switch {
	case o.Unknown:
		*t = UnknownText()
	case o.Sealed != "":
		*t = Text{form: textSealed, value: o.Sealed}
	default:
		return errors.New("want a string or a sealed value, found an object that is neither")
	}
	return nil
}
