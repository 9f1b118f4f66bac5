package profile

import (
	"bytes"
	"reflect"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	library "github.com/google/pprof/profile"
)

// libraryGraph is what Read is to return, by the library that pprof itself has.
func libraryGraph(t *testing.T, data []byte) Graph {
	t.Helper()
	in, err := library.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	last := len(in.SampleType) - 1
	g := Graph{Unit: in.SampleType[last].Unit}
	scale := 1.0
	if g.Unit == "nanoseconds" {
		g.Unit, scale = "seconds", 1e-9
	}
	for _, sample := range in.Sample {
		s := Stack{Weight: float64(sample.Value[last]) * scale}
		for _, location := range slices.Backward(sample.Location) {
			for _, line := range slices.Backward(location.Line) {
				if line.Function != nil && len(s.Frames) < maxDepth {
					s.Frames = append(s.Frames, line.Function.Name)
				}
			}
		}
		g.Stacks = append(g.Stacks, s)
	}
	return g
}

// TestPprofAsTheLibraryReadsIt: profiles of the runtime and those that the library writes are read
// as the library reads them.
func TestPprofAsTheLibraryReadsIt(t *testing.T) {
	var heap, written bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&heap, 0); err != nil {
		t.Fatal(err)
	}
	outer, inner := &library.Function{ID: 1, Name: "outer"}, &library.Function{ID: 2, Name: "inlined"}
	both := &library.Location{ID: 1, Line: []library.Line{{Function: inner, Line: 3}, {Function: outer, Line: 9}}}
	none := &library.Location{ID: 2, Address: 0x4711}
	p := &library.Profile{
		SampleType: []*library.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Function:   []*library.Function{outer, inner}, Location: []*library.Location{both, none},
		Sample: []*library.Sample{
			{Location: []*library.Location{both, none, both}, Value: []int64{1, 10_000_000}, Label: map[string][]string{"task": {"0"}}},
			{Location: []*library.Location{none}, Value: []int64{1, -5}},
		},
	}
	if err := p.Write(&written); err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	if err := p.WriteUncompressed(&plain); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"heap": heap.Bytes(), "written": written.Bytes(), "plain": plain.Bytes()} {
		got, err := Read(Pprof, data)
		if want := libraryGraph(t, data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
	// What ends too early or names what is not there is an error, or a profile of what is left.
	for n := range plain.Len() {
		_, _ = Read(Pprof, plain.Bytes()[:n])
	}
	odd := bytes.Replace(plain.Bytes(), []byte{byte(sampleLocation)<<3 | 2, 1, 2}, []byte{byte(sampleLocation)<<3 | 2, 1, 77}, 1)
	if bytes.Equal(odd, plain.Bytes()) {
		odd = bytes.Replace(plain.Bytes(), []byte{byte(sampleLocation) << 3, 2}, []byte{byte(sampleLocation) << 3, 77}, 1)
	}
	if _, err := Read(Pprof, odd); err == nil || !strings.Contains(err.Error(), "no location 77") {
		t.Errorf("a location that is not there: got %v", err)
	}
}
