package state

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// large is a document of n jobs with one task each.
func large(b *testing.B, n int) Document {
	b.Helper()
	d := sample(b)
	job, slice := d.Jobs[d.Desired.Jobs[0].Addr], d.Slices["s-1"]
	d.Jobs, d.Slices, d.Desired.Jobs = map[schema.Address]*Job{}, map[string]*Slice{}, nil
	for i := range n {
		spec, j, s := *job.Spec, *job, *slice
		spec.Addr.Key = schema.IntKey(i)
		j.Spec = &spec
		s.Spec.Name = fmt.Sprintf("s-%d", i)
		d.Jobs[spec.Addr], d.Slices[s.Spec.Name] = &j, &s
		d.Desired.Jobs = append(d.Desired.Jobs, spec)
	}
	return d
}

// The baseline is what the JSON package takes for the same document.
func BenchmarkEncode(b *testing.B) {
	d := large(b, 10_000)
	encoders := map[string]func(Document) ([]byte, error){
		"state": Encode,
		"json":  func(d Document) ([]byte, error) { return json.Marshal(d) },
	}
	for _, name := range []string{"json", "state"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				data, err := encoders[name](d)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(data)))
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := Encode(large(b, 10_000))
	if err != nil {
		b.Fatal(err)
	}
	decoders := map[string]func() error{
		"json":  func() error { var d Document; return json.Unmarshal(data, &d) },
		"state": func() error { _, err := Decode(data); return err },
	}
	for _, name := range []string{"json", "state"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := decoders[name](); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
