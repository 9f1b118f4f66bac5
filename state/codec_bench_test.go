package state_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// The baseline is what the JSON package takes for the same document, which is
// what version 1 of the format was.
func BenchmarkEncode(b *testing.B) {
	d := large(b, 10_000)
	encoders := map[string]func(state.Document) ([]byte, error){
		"state": state.Encode,
		"json":  func(d state.Document) ([]byte, error) { return json.Marshal(d) },
	}
	for _, name := range []string{"json", "state"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				data, err := encoders[name](d)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(data)), "bytes")
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	d := large(b, 10_000)
	first, err := json.Marshal(d)
	if err != nil {
		b.Fatal(err)
	}
	one := bytes.Replace(first, []byte(`"format_version":4`), []byte(`"format_version":1`), 1)
	second, err := state.Encode(d)
	if err != nil {
		b.Fatal(err)
	}
	decoders := map[string]func() error{
		"json":      func() error { var d state.Document; return json.Unmarshal(first, &d) },
		"version 1": func() error { _, err := state.Decode(one); return err },
		"state":     func() error { _, err := state.Decode(second); return err },
	}
	for _, name := range []string{"json", "version 1", "state"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := decoders[name](); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoadAndSave reads, decodes, encodes and writes a document in a
// directory. The baseline reads and writes the same bytes.
func BenchmarkLoadAndSave(b *testing.B) {
	documents := []struct {
		name string
		d    state.Document
	}{
		{"for_each/1000", large(b, 1_000)},
		{"for_each/10000", large(b, 10_000)},
		{"for_each/50000", large(b, 50_000)},
		{"chain/5000", chain(b, 5_000)},
	}
	for _, doc := range documents {
		data, err := state.Encode(doc.d)
		if err != nil {
			b.Fatal(err)
		}
		dir, err := store.CreateDir(filepath.Join(b.TempDir(), "store"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := dir.Put(b.Context(), store.StateKey, data, store.Any); err != nil {
			b.Fatal(err)
		}
		for name, turn := range map[string]func([]byte) ([]byte, error){
			"bytes": func(data []byte) ([]byte, error) { return data, nil },
			"state": func(data []byte) ([]byte, error) {
				d, err := state.Decode(data)
				if err != nil {
					return nil, err
				}
				return state.Encode(d)
			},
		} {
			b.Run(doc.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					object, err := dir.Get(b.Context(), store.StateKey)
					if err != nil {
						b.Fatal(err)
					}
					data, err := turn(object.Data)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := dir.Put(b.Context(), store.StateKey, data, object.Generation); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(data)), "bytes")
			})
		}
	}
}
