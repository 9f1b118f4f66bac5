package state

import (
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// writeValue writes what v points to. It does what MarshalEncode does, without
// calling the methods of types that are written for every job.
func writeValue(enc *jsontext.Encoder, v any) error {
	switch v := v.(type) {
	case *schema.Address:
		return enc.WriteToken(jsontext.String(v.String()))
	case schema.Text:
		return writeText(enc, v)
	case *[]schema.Text:
		if *v != nil {
			return writeTexts(enc, *v)
		}
	}
	return jsonv2.MarshalEncode(enc, v)
}

func writeTexts(enc *jsontext.Encoder, texts []schema.Text) error {
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, t := range texts {
		if err := writeText(enc, t); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndArray)
}

func writeText(enc *jsontext.Encoder, t schema.Text) error {
	if t.IsSensitive() || t.IsUnknown() {
		return jsonv2.MarshalEncode(enc, t)
	}
	return enc.WriteToken(jsontext.String(t.String()))
}

// readValue reads what writeValue wrote.
func readValue(dec *jsontext.Decoder, v any) error {
	switch v := v.(type) {
	case *schema.Address:
		if dec.PeekKind() == '"' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			return parseAddress(v, token.String())
		}
	case *[]schema.Text:
		if dec.PeekKind() == '[' {
			return readTexts(dec, v)
		}
	}
	return jsonv2.UnmarshalDecode(dec, v)
}

func parseAddress(a *schema.Address, text string) (err error) {
	if text != "" {
		*a, err = schema.ParseAddress(text)
	}
	return err
}

func readTexts(dec *jsontext.Decoder, texts *[]schema.Text) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	read := []schema.Text{}
	for dec.PeekKind() != ']' {
		if dec.PeekKind() == '"' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			read = append(read, schema.Plain(token.String()))
			continue
		}
		var t schema.Text
		if err := jsonv2.UnmarshalDecode(dec, &t); err != nil {
			return err
		}
		read = append(read, t)
	}
	*texts = read
	_, err := dec.ReadToken()
	return err
}
