package funcs

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

func encodingFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "base64decode", text: "The text that base64 stands for.", returns: "string", fn: stringFunc(base64Decode),
			params: []string{"str: in base64"}, example: `base64decode("SGVsbG8gV29ybGQ=")`,
		},
		{
			name: "base64encode", text: "The bytes of a text in base64.", returns: "string", fn: stringFunc(base64Encode),
			params: []string{"str: the text"}, example: `base64encode("Hello World")`,
		},
		{
			name: "base64gunzip", text: "The text that base64 of its gzip stands for.", returns: "string", fn: stringFunc(base64Gunzip),
			params: []string{"str: in base64"}, example: `base64gunzip(base64gzip("Hello World"))`,
		},
		{
			name: "base64gzip", text: "A text compressed with gzip, in base64.", returns: "string", fn: stringFunc(base64Gzip),
			params: []string{"str: the text"}, example: `base64gzip("hello")`,
		},
		{
			name: "csvdecode", text: "The rows of a CSV text as objects, whose attributes the first row names.", returns: "list(any)", fn: stdlib.CSVDecodeFunc, limit: limitCSV,
			params: []string{"str: the text"}, example: `csvdecode("a,b\n1,2\n3,4\n")`,
		},
		{
			name: "jsondecode", text: "The value that a JSON text stands for.", returns: "any", fn: decodeFunc(jsonDecode), limit: limitJSON,
			params: []string{"str: the text"}, example: `jsondecode("{\"lr\": 0.1, \"steps\": [1, 2]}")`,
		},
		{
			name: "jsonencode", text: "A value as JSON.", returns: "string", fn: stdlib.JSONEncodeFunc, limit: limitWeight,
			params: []string{"val: the value"}, example: `jsonencode({ lr = 0.1, steps = [1, 2] })`,
		},
		{
			name: "textdecodebase64", text: "The text that base64 in a certain character encoding stands for.", returns: "string", fn: textFunc(textDecode),
			params: []string{"source: in base64", "encoding: its name at IANA, such as UTF-16LE"}, example: `textdecodebase64("aABpAA==", "UTF-16LE")`,
		},
		{
			name: "textencodebase64", text: "A text in a certain character encoding, in base64.", returns: "string", fn: textFunc(textEncode),
			params: []string{"string: the text", "encoding: its name at IANA, such as UTF-16LE"}, example: `textencodebase64("hi", "UTF-16LE")`,
		},
		{
			name: "urldecode", text: "The text that was escaped for the query of a URL.", returns: "string", fn: stringFunc(urlDecode),
			params: []string{"str: the escaped text"}, example: `urldecode("a%26b+c")`,
		},
		{
			name: "urlencode", text: "A text escaped for the query of a URL.", returns: "string", fn: stringFunc(urlEncode),
			params: []string{"str: the text"}, example: `urlencode("a&b c")`,
		},
		{
			name: "yamldecode", text: "The value that a YAML text stands for.", returns: "any", fn: decodeFunc(yamlDecode), limit: limitYAML,
			params: []string{"src: the text, one document"}, example: `yamldecode("lr: 0.1\nsteps: [1, 2]").steps`,
		},
		{
			name: "yamlencode", text: "A value as YAML.", returns: "string", fn: ctyyaml.YAMLEncodeFunc, limit: limitWeight,
			params: []string{"value: the value"}, example: `yamlencode({ lr = 0.1, steps = [1, 2] })`,
		},
	}
}

func base64Encode(s string) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(s)), nil
}

func base64Bytes(s string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	return data, nil
}

func base64Decode(s string) (string, error) {
	data, err := base64Bytes(s)
	if err != nil {
		return "", err
	}
	return decodedText(data)
}

func decodedText(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errors.New("the decoded bytes are not UTF-8 text")
	}
	return string(data), nil
}

// base64Gzip flushes before it closes, as Terraform does: equal texts have equal
// results in both.
func base64Gzip(s string) (string, error) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write([]byte(s))
	if err := errors.Join(err, w.Flush(), w.Close()); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes()), nil
}

func base64Gunzip(s string) (string, error) {
	data, err := base64Bytes(s)
	if err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", errors.New("it is not gzip in base64")
	}
	data, err = io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return "", fmt.Errorf("it is broken: %w", err)
	}
	if len(data) > maxText {
		return "", errTooLong()
	}
	return decodedText(data)
}

func urlEncode(s string) (string, error) { return url.QueryEscape(s), nil }

func urlDecode(s string) (string, error) {
	text, err := url.QueryUnescape(s)
	if err != nil {
		return "", errors.New("a % is not followed by two hexadecimal digits")
	}
	return decodedText([]byte(text))
}

// textFunc makes a function of a text and the name of an encoding.
func textFunc(of func(s string, enc encoding.Encoding) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[1].AsString()
			enc, err := ianaindex.IANA.Encoding(name)
			if err != nil || enc == nil {
				return cty.NilVal, function.NewArgErrorf(1, "the encoding %q is not known; UTF-8, UTF-16LE and ISO-8859-1 are, for example", name)
			}
			s, err := of(args[0].AsString(), enc)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(s), nil
		},
	})
}

func textEncode(s string, enc encoding.Encoding) (string, error) {
	data, err := enc.NewEncoder().Bytes([]byte(s))
	if err != nil {
		return "", errors.New("the encoding has not all of its characters")
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

func textDecode(s string, enc encoding.Encoding) (string, error) {
	data, err := base64Bytes(s)
	if err != nil {
		return "", err
	}
	data, err = enc.NewDecoder().Bytes(data)
	if err != nil || strings.ContainsRune(string(data), utf8.RuneError) {
		return "", errors.New("the bytes are no text in that encoding")
	}
	return string(data), nil
}

// decodeFunc makes a function of a decoder, whose value may still be too large:
// aliases of YAML share what they stand for, so that a short text can have a
// huge value, whose size is known before anything visits all of it.
func decodeFunc(decode func(text string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Type: cty.String}},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			val, err := decode(args[0].AsString())
			if err == nil {
				err = new(shape).visit(val, 0)
			}
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return val, nil
		},
	})
}

func jsonDecode(text string) (cty.Value, error) {
	typ, err := ctyjson.ImpliedType([]byte(text))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("it is not JSON: %w", err)
	}
	return ctyjson.Unmarshal([]byte(text), typ)
}

func yamlDecode(text string) (cty.Value, error) {
	return ctyyaml.Standard.Unmarshal([]byte(text), cty.DynamicPseudoType)
}
