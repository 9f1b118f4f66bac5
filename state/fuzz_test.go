package state_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/state"
)

// realDocuments are those in testdata and some that are made anew.
func realDocuments(t testing.TB) [][]byte {
	t.Helper()
	var real [][]byte
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v, %v, want some", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		real = append(real, data)
	}
	for _, d := range []state.Document{sample(t), large(t, 3), chain(t, 3)} {
		data, err := state.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		real = append(real, data)
	}
	return real
}

// FuzzDecode starts from real documents and from damaged ones.
func FuzzDecode(f *testing.F) {
	for _, data := range realDocuments(f) {
		f.Add(data)
		f.Add([]byte(compact(f, data)))
		f.Add(data[:len(data)/2])
		f.Add(data[:len(data)-3])
		for _, change := range []struct{ from, to string }{
			{`"addr"`, `"add"`}, {`"slice`, `"slicf`},
			{`: {`, `: [`}, {`: "`, `: null, "`}, {`true`, `null`}, {`[`, `[null,`}, {`1`, `-1`}, {`a`, "\xff"}, {`e`, `\u0065`},
		} {
			f.Add(bytes.Replace(data, []byte(change.from), []byte(change.to), 1))
			f.Add(bytes.ReplaceAll(data, []byte(change.from), []byte(change.to)))
		}
	}
	for _, seed := range []string{
		``, `null`, `{}`, `{"format_version":1,"lineage":"l"}`, `{"format_version":5}`, `{"fray_encrypted":1}`,
		`{"format_version":1,"lineage":"l","jobs":{"job.x":null}}`,
		`{"format_version":1,"lineage":"l","jobs":{"job.x":{"spec":{},"attempts":[null,{"tasks":[null,{}]}]}},"slices":{"":null}}`,
		`{"format_version":1,"lineage":"l","outputs":{"a":{"value": [ 1 , "\u003c" ]},"b":{"value":null}}}`,
		`{"format_version":1,"lineage":"l","jobs":{"job.x[\"\\xff\"]":{"spec":{"command":["a",{"unknown":true}]},"attempts":null}}}`,
		`{"format_version":1,"lineage":"l","slices":{"s":{"spec":{"name":"s","cpu":1e-7},"asked_at":"2026-01-02T03:04:05.6+07:00"}}}`,
		`{"format_version":1,"lineage":"l","desired":{"reservations":[{"ttl":"1h0.5s","addr":""}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		first, intact, err := state.DecodeEdited(data)
		if !bytes.Equal(data, before) {
			t.Fatal("decoding changed the data")
		}
		if _, strict := state.Decode(data); intact && (strict == nil) != (err == nil) || err != nil && strict == nil {
			t.Fatalf("got %v from Decode, and %v from DecodeEdited", strict, err)
		}
		if err != nil {
			if !errors.Is(err, state.ErrDamaged) && !errors.Is(err, state.ErrNewer) && !errors.Is(err, state.ErrEncrypted) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		second, encoded := roundTrip(t, first)
		again, err := state.Encode(second)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(encoded), string(again)); diff != "" {
			t.Fatalf("the same document is written in two ways (-first +second):\n%s", diff)
		}
	})
}
