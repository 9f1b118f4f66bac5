// Package optional reads the arguments of calls that callers may leave out, or give as nil. It leaves out decoding them. Start at
// Arguments.
package optional

import (
	"fmt"

	"github.com/fray-ml/fray/actorrpc/codec"
)

// Arguments are the arguments that a caller may leave out, or give as nil.
type Arguments []any

// Text is argument i, "" if it is missing.
func (o Arguments) Text(i int, name string) (string, error) {
	if i >= len(o) || o[i] == nil {
		return "", nil
	}
	if text, ok := o[i].(string); ok {
		return text, nil
	}
	return "", &codec.Error{Path: fmt.Sprintf("args[%d]", i), Problem: fmt.Sprintf("%s is of type %T: want a string", name, o[i])}
}

// Number is argument i, 0 if it is missing.
func (o Arguments) Number(i int, name string) (int, error) {
	if i >= len(o) || o[i] == nil {
		return 0, nil
	}
	if n, ok := o[i].(int64); ok && n >= 0 {
		return int(n), nil
	}
	return 0, &codec.Error{Path: fmt.Sprintf("args[%d]", i), Problem: fmt.Sprintf("%s is %v: want an integer of at least 0", name, o[i])}
}

// Seconds is argument i, 0 if it is missing.
func (o Arguments) Seconds(i int, name string) (float64, error) {
	if i >= len(o) || o[i] == nil {
		return 0, nil
	}
	switch n := o[i].(type) {
	case float64:
		return n, nil
	case int64:
		return float64(n), nil
	}
	return 0, &codec.Error{Path: fmt.Sprintf("args[%d]", i), Problem: fmt.Sprintf("%s is of type %T: want seconds", name, o[i])}
}

// Texts is argument i, nil if it is missing.
func (o Arguments) Texts(i int, name string) (map[string]string, error) {
	if i >= len(o) || o[i] == nil {
		return nil, nil
	}
	given, ok := o[i].(map[string]any)
	texts := make(map[string]string, len(given))
	for key, value := range given {
		var isText bool
		texts[key], isText = value.(string)
		ok = ok && isText
	}
	if !ok {
		return nil, &codec.Error{Path: fmt.Sprintf("args[%d]", i), Problem: fmt.Sprintf("%s is %v: want a map of strings", name, o[i])}
	}
	return texts, nil
}

// Version is argument i, nil if it is missing.
func (o Arguments) Version(i int, name string) (*int64, error) {
	if i >= len(o) || o[i] == nil {
		return nil, nil
	}
	n, err := o.Number(i, name)
	version := int64(n)
	return &version, err
}
