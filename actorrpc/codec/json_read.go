package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// These texts are the same in Python.
const (
	notJSON   = "the bytes are no JSON value"
	badNumber = "a number is out of range: an int has to be within -2^63 to 2^64-1, and a float finite"
	badForm   = "is malformed"
)

func readJSON(args bool, data []byte, memory *budget) (scope, error) {
	if err := memory.takeJSON(data); err != nil {
		return scope{}, err
	}
	if !utf8.Valid(data) || loneSurrogate(data) {
		return scope{}, bad(badText)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var parsed any
	if err := dec.Decode(&parsed); err != nil {
		return scope{}, bad(notJSON)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return scope{}, bad(notJSON)
	}
	if !args {
		result, err := unfold(parsed, 0)
		return scope{result: result}, err
	}
	pair, err := unfold(parsed, -2) // the two outermost arrays are no levels of an argument
	if err != nil {
		return scope{}, err
	}
	return argsScope(pair)
}

// loneSurrogate reports whether an escape stands for half a character, which the
// parser would replace by another one.
func loneSurrogate(data []byte) bool {
	high := false // the escape before was the first half
	for {
		at := bytes.IndexByte(data, '\\')
		if high && at != 0 {
			return true
		}
		if at < 0 || at+1 >= len(data) {
			return false
		}
		data = data[at:]
		half := uint64(0)
		if data[1] == 'u' && len(data) >= 6 {
			half, _ = strconv.ParseUint(string(data[2:6]), 16, 16)
		}
		low := half&0xfc00 == 0xdc00
		if low != high {
			return true
		}
		high = half&0xfc00 == 0xd800
		data = data[2:]
		if low || high {
			data = data[4:]
		}
	}
}

// unfold makes a tree of what the parser of JSON found, in place.
func unfold(parsed any, depth int) (any, error) {
	switch v := parsed.(type) {
	case json.Number:
		return number(v.String())
	case []any:
		if depth >= MaxDepth {
			return nil, bad(readTooDeep)
		}
		for i := range v {
			var err error
			if v[i], err = unfold(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if depth >= MaxDepth {
			return nil, bad(readTooDeep)
		}
		return unfoldObject(v, depth)
	}
	return parsed, nil
}

func number(s string) (any, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, bad(badNumber)
		}
		return f, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return nil, bad(badNumber)
	}
	return n, nil
}

func unfoldObject(object map[string]any, depth int) (any, error) {
	for _, k := range sortedKeys(object) {
		if strings.HasPrefix(k, "$") {
			return form(k, object)
		}
	}
	for k := range object {
		var err error
		if object[k], err = unfold(object[k], depth+1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// form is what an object with a key that begins with $ stands for.
func form(key string, object map[string]any) (any, error) {
	var value any
	err := errors.New("it has other keys beside")
	if len(object) == 1 {
		switch key {
		case formBytes:
			value, err = base64Of(object[key])
		case formTime:
			value, err = rfc3339Of(object[key])
		case formArray:
			value, err = arrayOf(object[key])
		case formActor:
			value, err = actorOf(object[key])
		default:
			return nil, bad(fmt.Sprintf("%q is no form of this protocol", key))
		}
	}
	if checked, ok := errors.AsType[*Error](err); ok {
		return nil, checked
	}
	if err != nil {
		return nil, bad(fmt.Sprintf("%q %s", key, badForm))
	}
	return value, nil
}

func base64Of(parsed any) ([]byte, error) {
	text, ok := parsed.(string)
	if !ok {
		return nil, errors.New("no string")
	}
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("line breaks")
	}
	return base64.StdEncoding.DecodeString(text)
}

func rfc3339Of(parsed any) (any, error) {
	text, _ := parsed.(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || text[13] != ':' || strings.Contains(text, ",") || !zoneFits(text) { // Parse takes more than RFC 3339
		return nil, bad(badTime)
	}
	if _, err := inCalendar(t.UTC()); err != nil {
		return nil, bad(badTime)
	}
	return t.UTC(), nil
}

// zoneFits reports whether the zone of a time, if it ends in one, is less than a day.
func zoneFits(text string) bool {
	zone := text[len(text)-6:]
	return strings.HasSuffix(zone, "Z") || zone[1:3] <= "23"
}

func arrayOf(parsed any) (any, error) {
	parts, _ := parsed.(map[string]any)
	dtype, isText := parts["dtype"].(string)
	list, isList := parts["shape"].([]any)
	data, err := base64Of(parts["data"])
	if !isText || !isList || len(parts) != 3 || err != nil {
		return nil, bad(badArray)
	}
	numbers, err := unfold(list, 0)
	if err != nil {
		return nil, bad(badArray)
	}
	shape, ok := shapeOf(numbers)
	if !ok {
		return nil, bad(badArray)
	}
	a := NDArray{DType: DType(dtype), Shape: shape, Data: data}
	return a, a.check()
}

func actorOf(parsed any) (any, error) {
	parts, _ := parsed.(map[string]any)
	name, ok0 := parts["name"].(string)
	namespace, ok1 := parts["namespace"].(string)
	url, ok2 := parts["url"].(string)
	member, ok3 := parts["member"].(string)
	if !ok0 || !ok1 || !ok2 || len(parts) != 3 && (len(parts) != 4 || !ok3) {
		return nil, bad(badActor)
	}
	return ActorRef{Name: name, Namespace: namespace, URL: url, Member: member}, nil
}
