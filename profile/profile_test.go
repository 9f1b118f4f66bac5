package profile

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"runtime/pprof"
	"strings"
	"testing"
)

func TestHeader(t *testing.T) {
	var out bytes.Buffer
	h := Header{Kind: CPU, Format: Speedscope, Tool: "py-spy\x1b[31m", PID: 7, Program: "python3"}
	if err := h.Write(&out); err != nil {
		t.Fatal(err)
	}
	out.WriteString("{}\nmore\n")
	got, data, err := Split(out.Bytes())
	h.Tool = "py-spy�[31m"
	if err != nil || got != h || string(data) != "{}\nmore\n" {
		t.Errorf("got %+v, %q, %v", got, data, err)
	}
	for _, bad := range []string{"", "no line", "no JSON\nx"} {
		if _, _, err := Split([]byte(bad)); err == nil {
			t.Errorf("%q is a profile", bad)
		}
	}
}

func TestFormatsOfFiles(t *testing.T) {
	for _, f := range []Format{Speedscope, Pprof, PlainText} {
		if got, ok := FormatOf("x" + f.Ext()); !ok || got != f {
			t.Errorf("a file %s is of %s", f.Ext(), got)
		}
	}
	if _, ok := FormatOf("x.svg"); ok {
		t.Error("an image is a profile")
	}
}

// TestFlameOfHostileNames: the image is well-formed XML without a script, whatever functions are called.
func TestFlameOfHostileNames(t *testing.T) {
	g := Graph{Unit: "seconds", Stacks: []Stack{
		{[]string{"main", `</text><script>alert(1)</script>`, "a\x00\x1b\xff\uFFFE"}, 3}, {[]string{"main", strings.Repeat("é", 10000)}, 1}, {nil, 1}, {[]string{"gone"}, 0},
	}}
	for range 400 { // recursion
		g.Stacks[1].Frames = append(g.Stacks[1].Frames, "again")
	}
	var out bytes.Buffer
	if err := Flame(&out, "title <&>", g); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(&out)
	bars := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			if start.Name.Local == "script" {
				t.Error("the image has a script")
			}
			if start.Name.Local == "rect" {
				bars++
			}
		}
	}
	if bars < 400 {
		t.Errorf("%d bars", bars)
	}
	out.Reset()
	if err := Flame(&out, "empty", Graph{}); err != nil || !strings.Contains(out.String(), "no samples") {
		t.Errorf("of nothing: %v, %s", err, out.String())
	}
}

func TestTop(t *testing.T) {
	g := Graph{Unit: "seconds", Stacks: []Stack{{[]string{"main", "a"}, 3}, {[]string{"main", "b", "a", "b"}, 1}}}
	want := "4.00 s in all\n  self   with calls  function\n 75.0%       100.0%  a\n 25.0%        25.0%  b\n"
	if got := Top(g, 10); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Top(Graph{}, 10); !strings.Contains(got, "no samples") {
		t.Errorf("of nothing: %q", got)
	}
}

// TestReadPprof reads what the runtime writes.
func TestReadPprof(t *testing.T) {
	var out bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&out, 0); err != nil {
		t.Fatal(err)
	}
	g, err := Read(Pprof, out.Bytes())
	if err != nil || g.Unit != "bytes" {
		t.Errorf("%v, unit %q", err, g.Unit)
	}
	for _, f := range []Format{Pprof, Speedscope, PlainText} {
		if _, err := Read(f, []byte("no profile")); err == nil {
			t.Errorf("%s: what is no profile is one", f)
		}
	}
	if _, err := Read(Speedscope, []byte(`{"shared":{"frames":[]},"profiles":[{"samples":[[4]]}]}`)); err == nil {
		t.Error("a frame that is not there is taken")
	}
}
