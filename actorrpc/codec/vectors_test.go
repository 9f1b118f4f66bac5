package codec_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
)

// vector is one of testdata/vectors.json, which python/tests/test_codec_vectors.py reads too.
type vector struct {
	Name       string
	Codec      string
	Args       json.RawMessage
	Kwargs     map[string]any
	Result     any
	Data       any
	Text       *string
	Buffers    []any
	DecodeOnly bool `json:"decode_only"`
	Path       string
	Problem    string
}

type vectorFile struct{ Carried, Malformed, Refused []vector }

func vectors(t testing.TB) vectorFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file vectorFile
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Carried) < 100 || len(file.Malformed) < 50 || len(file.Refused) < 5 {
		t.Fatalf("the file has %d, %d and %d vectors; is it whole?", len(file.Carried), len(file.Malformed), len(file.Refused))
	}
	return file
}

func (v vector) kind() codec.Kind {
	if v.Codec == "json" {
		return codec.JSON
	}
	return codec.Msgpack
}

func (v vector) data() []byte {
	if v.Text != nil {
		return []byte(*v.Text)
	}
	return hexOf(v.Data)
}

func (v vector) buffers() [][]byte {
	var buffers [][]byte
	for _, b := range v.Buffers {
		buffers = append(buffers, hexOf(b))
	}
	return buffers
}

// positional are the arguments, nil of a vector that is a result.
func (v vector) positional() []any {
	var notation []any
	if err := json.Unmarshal(v.Args, &notation); err != nil {
		return nil
	}
	values := []any{}
	for _, n := range notation {
		values = append(values, valueOf(n))
	}
	return values
}

func (v vector) named() map[string]any {
	values := map[string]any{}
	for k, n := range v.Kwargs {
		values[k] = valueOf(n)
	}
	return values
}

func hexOf(notation any) []byte {
	switch n := notation.(type) {
	case string:
		data, err := hex.DecodeString(n)
		if err != nil {
			panic(err)
		}
		return data
	case []any:
		var data []byte
		for _, part := range n {
			data = append(data, hexOf(part)...)
		}
		return data
	case map[string]any:
		pair := n["repeat"].([]any)
		return bytes.Repeat(hexOf(pair[0]), int(pair[1].(float64)))
	}
	panic(fmt.Sprintf("no hex: %v", notation))
}

// valueOf is the tree that a vector's notation stands for.
func valueOf(notation any) any {
	object, ok := notation.(map[string]any)
	if !ok {
		return notation
	}
	for key, n := range object {
		switch key {
		case "int":
			if i, err := strconv.ParseInt(n.(string), 10, 64); err == nil {
				return i
			}
			u, err := strconv.ParseUint(n.(string), 10, 64)
			if err != nil {
				panic(err)
			}
			return u
		case "float":
			f, err := strconv.ParseFloat(n.(string), 64)
			if err != nil {
				panic(err)
			}
			return f
		case "bytes":
			return hexOf(n)
		case "time":
			at, err := time.Parse(time.RFC3339Nano, n.(string))
			if err != nil {
				panic(err)
			}
			return at
		case "list":
			list := []any{}
			for _, element := range n.([]any) {
				list = append(list, valueOf(element))
			}
			return list
		case "nested":
			var list any = []any{}
			for range int(n.(float64)) - 1 {
				list = []any{list}
			}
			return list
		case "map":
			return mapOf(n.([]any))
		case "array":
			return arrayOf(n.(map[string]any))
		case "actor":
			parts := n.([]any)
			ref := codec.ActorRef{Name: parts[0].(string), Namespace: parts[1].(string), URL: parts[2].(string)}
			if len(parts) > 3 {
				ref.Member = parts[3].(string)
			}
			return ref
		}
	}
	panic(fmt.Sprintf("no value: %v", notation))
}

func mapOf(pairs []any) any {
	words, mixed := map[string]any{}, map[any]any{}
	for _, pair := range pairs {
		k, v := valueOf(pair.([]any)[0]), valueOf(pair.([]any)[1])
		mixed[k] = v
		if word, ok := k.(string); ok {
			words[word] = v
		}
	}
	if len(words) == len(mixed) {
		return words
	}
	return mixed
}

func arrayOf(parts map[string]any) codec.NDArray {
	shape := []int{}
	for _, n := range parts["shape"].([]any) {
		shape = append(shape, int(n.(float64)))
	}
	return codec.NDArray{DType: codec.DType(parts["dtype"].(string)), Shape: shape, Data: hexOf(parts["data"])}
}

// same is reflect.DeepEqual, but for NaN, which equals itself, and negative zero, which is not zero.
func same(a, b any) bool {
	x, ok1 := a.(float64)
	y, ok2 := b.(float64)
	if ok1 && ok2 {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	return reflect.DeepEqual(a, b)
}

func TestVectorsCarried(t *testing.T) {
	for _, v := range vectors(t).Carried {
		t.Run(v.Name, func(t *testing.T) {
			if v.positional() == nil {
				checkResult(t, v)
				return
			}
			checkArgs(t, v)
		})
	}
}

func checkResult(t *testing.T, v vector) {
	t.Helper()
	want := valueOf(v.Result)
	var got any
	if err := codec.DecodeResult(v.kind(), v.data(), v.buffers(), 0, &got); err != nil {
		t.Fatalf("decode: %v", err)
	}
	if !same(got, want) {
		t.Errorf("decoded %#v, want %#v", got, want)
	}
	if v.DecodeOnly {
		return
	}
	data, buffers, err := codec.EncodeResult(v.kind(), want)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	checkBytes(t, v, data, buffers)
}

func checkArgs(t *testing.T, v vector) {
	t.Helper()
	got, err := codec.DecodeArgs(v.kind(), v.data(), v.buffers(), 0)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if !same(got.Positional, v.positional()) || !same(got.Named, v.named()) {
		t.Errorf("decoded %#v, want %#v and %#v", got, v.positional(), v.named())
	}
	data, buffers, err := codec.EncodeArgs(v.kind(), v.positional(), v.named())
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	checkBytes(t, v, data, buffers)
}

func checkBytes(t *testing.T, v vector, data []byte, buffers [][]byte) {
	t.Helper()
	if !bytes.Equal(data, v.data()) {
		t.Errorf("encoded\n%x\nwant\n%x", data, v.data())
	}
	if !slices.EqualFunc(buffers, v.buffers(), bytes.Equal) {
		t.Errorf("encoded buffers %x, want %x", buffers, v.buffers())
	}
}

func TestVectorsMalformed(t *testing.T) {
	for _, v := range vectors(t).Malformed {
		t.Run(v.Name, func(t *testing.T) {
			var err error
			if string(v.Args) == "true" {
				_, err = codec.DecodeArgs(v.kind(), v.data(), v.buffers(), 0)
			} else {
				var got any
				err = codec.DecodeResult(v.kind(), v.data(), v.buffers(), 0, &got)
			}
			checkError(t, err, codec.Error{Problem: v.Problem})
		})
	}
}

func TestVectorsRefused(t *testing.T) {
	for _, v := range vectors(t).Refused {
		t.Run(v.Name, func(t *testing.T) {
			_, _, err := codec.EncodeArgs(v.kind(), v.positional(), v.named())
			checkError(t, err, codec.Error{Path: v.Path, Problem: v.Problem})
		})
	}
}

func checkError(t *testing.T, err error, want codec.Error) {
	t.Helper()
	got, ok := errors.AsType[*codec.Error](err)
	if !ok || *got != want {
		t.Errorf("got error %q (%T), want %q", strings.TrimSpace(fmt.Sprint(err)), err, want.Error())
	}
}
