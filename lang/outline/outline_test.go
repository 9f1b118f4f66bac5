package outline

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const two = `variable "a" {
  default = 1
}

# about b
job "b" {
  command = ["x", var.a]
}

job_group "g" {
  job "c" {
    command = [local.d]
  }
}

locals {
  d = "${var.a}🚀"
}
`

// checkWhole fails if the parts are not those of the text, one after the other.
func checkWhole(t interface{ Fatalf(string, ...any) }, f *File) {
	at, line := 0, 1
	var joined []byte
	for _, p := range f.Parts {
		if p.Byte != at || p.Line != line {
			t.Fatalf("a part begins at line %d, byte %d; want %d and %d in\n%s", p.Line, p.Byte, line, at, f.Text)
		}
		joined = append(joined, p.Text...)
		at, line = at+len(p.Text), line+bytes.Count(p.Text, []byte("\n"))
	}
	if !bytes.Equal(joined, f.Text) {
		t.Fatalf("the parts are\n%s\nwant\n%s", joined, f.Text)
	}
}

func symbolsIn(f *File) []string {
	var found []string
	for site := range (Directory{[]*File{f}}).Sites {
		found = append(found, string(site.Symbol))
	}
	slices.Sort(found)
	return found
}

func TestParse(t *testing.T) {
	t.Parallel()
	f := Parse("main.hcl", []byte(two))
	checkWhole(t, f)
	if got, want := symbolsIn(f), []string{"job.b", "job_group.g", "job_group.g.job.c", "local.d", "var.a"}; !slices.Equal(got, want) {
		t.Errorf("it declares %q, want %q", got, want)
	}
	if got := f.Parts[2].Refers; !slices.Equal(got, []Symbol{"local.d"}) {
		t.Errorf("the group refers to %q", got)
	}
}

// TestEditKeepsParts: an edit parses one part, whatever the size of the file; a line more moves
// the others without parsing them.
func TestEditKeepsParts(t *testing.T) {
	t.Parallel()
	before := Parse("main.hcl", []byte(two))
	at := strings.Index(two, `"x"`)
	after := before.Edit(Edit{Start: at, End: at + 3, Text: []byte("\n\"yy\"")})
	checkWhole(t, after)
	for i, p := range after.Parts {
		if kept := p.Part == before.Parts[i].Part; kept != (i != 1) {
			t.Errorf("part %d is kept: %v", i, kept)
		}
	}
	body, starts := after.Body(func(int) bool { return true })
	if got := body.Blocks[2].TypeRange.Start; got.Line != 11 {
		t.Errorf("the block behind begins at line %d, want 11", got.Line)
	}
	if len(starts) != len(after.Parts) {
		t.Errorf("%d starts of %d parts", len(starts), len(after.Parts))
	}
}

// TestBrokenPart: what does not parse leaves the other blocks as they are, and is whole
// again when it does.
func TestBrokenPart(t *testing.T) {
	t.Parallel()
	before := Parse("main.hcl", []byte(two))
	at := strings.Index(two, `"x"`)
	broken := before.Edit(Edit{Start: at, End: at + 1})
	checkWhole(t, broken)
	if !broken.Parts[1].Broken() || len(broken.Parts) != len(before.Parts) {
		t.Fatalf("%d parts, the second is broken: %v", len(broken.Parts), broken.Parts[1].Broken())
	}
	if got := symbolsIn(broken); !slices.Equal(got, symbolsIn(before)) {
		t.Errorf("it declares %q", got)
	}
	for _, d := range broken.Parts[1].Errors("main.hcl") {
		if d.Subject.Start.Line < 6 || d.Subject.Start.Line > 9 {
			t.Errorf("the error is at line %d, not in the block", d.Subject.Start.Line)
		}
	}
	again := broken.Edit(Edit{Start: at, End: at, Text: []byte(`"`)})
	if again.Broken() || string(again.Text) != two {
		t.Errorf("it is still broken:\n%s", again.Text)
	}
}

// TestEditProperty: whatever is edited, the parts are those of the text; where no part is broken,
// they declare what the text declares.
func TestEditProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := Parse("main.hcl", []byte(two))
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			start := rapid.IntRange(0, len(f.Text)).Draw(t, "start")
			end := min(len(f.Text), start+rapid.IntRange(0, 40).Draw(t, "length"))
			text := rapid.SampledFrom([]string{"", "x", "\n", "{", "}", `"`, "/*", "*/", "<<E\n", "\nE\n", "job \"z\" {\n}\n", "🚀", "\r\n", "=", "#", "${"}).Draw(t, "text")
			f = f.Edit(Edit{start, end, []byte(text)})
			checkWhole(t, f)
			whole := Parse("main.hcl", f.Text)
			checkWhole(t, whole)
			if got, want := symbolsIn(f), symbolsIn(whole); !f.Broken() && !slices.Equal(got, want) {
				t.Fatalf("it declares %q, want %q, in\n%s", got, want, f.Text)
			}
			if !f.Broken() && whole.Broken() {
				t.Fatalf("each part parses, and the whole does not:\n%s", f.Text)
			}
		}
	})
}

func TestPoints(t *testing.T) {
	t.Parallel()
	f := Parse("main.hcl", []byte("a = \"🚀é\"\r\njob \"x\" {\n}\n🚀"))
	for _, tt := range []struct {
		point  Point
		before string // what stands before it
	}{
		{Point{0, 0}, ""},
		{Point{0, 5}, `a = "`},
		{Point{0, 7}, `a = "🚀`},
		{Point{0, 8}, `a = "🚀é`},
		{Point{1, 3}, "a = \"🚀é\"\r\njob"},
		{Point{3, 2}, "a = \"🚀é\"\r\njob \"x\" {\n}\n🚀"},
	} {
		if got := f.Offset(tt.point); got != len(tt.before) {
			t.Errorf("%v is byte %d, want %d", tt.point, got, len(tt.before))
		}
		if got := f.Point(len(tt.before)); got != tt.point {
			t.Errorf("byte %d is %v, want %v", len(tt.before), got, tt.point)
		}
	}
	if got := f.Offset(Point{99, 99}); got != len(f.Text) {
		t.Errorf("a point behind the end is byte %d, want %d", got, len(f.Text))
	}
	if got := f.Offset(Point{1, 99}); got != len("a = \"🚀é\"\r\njob \"x\" {") {
		t.Errorf("a point behind the line is byte %d", got)
	}
}

func TestAffected(t *testing.T) {
	t.Parallel()
	text := "variable \"a\" {}\nlocals {\n  b = var.a\n}\njob \"c\" {\n  command = [local.b]\n}\njob \"d\" {\n  command = []\n}\nprovider \"gcp\" {}\n"
	before := Directory{[]*File{Parse("main.hcl", []byte(text))}}
	change := func(old, anew string) Directory {
		at := strings.Index(text, old)
		return Directory{[]*File{before.Files[0].Edit(Edit{at, at + len(old), []byte(anew)})}}
	}
	for _, tt := range []struct {
		name             string
		after            Directory
		most             int
		affected, needed string
		all              bool
	}{
		{"a leaf", change("command = []", "command = [1]"), 9, "job.d", "job.d provider.gcp", true},
		{"its root", change(`"a" {}`, `"a" { }`), 9, "var.a local.b job.c", "var.a local.b job.c provider.gcp", true},
		{"too many", change(`"a" {}`, `"a" { }`), 1, "var.a local.b job.c", "var.a local.b job.c provider.gcp", false},
		{"too many, some referred to", change(`"a" {}`, `"a" { }`), 0, "var.a", "var.a local.b provider.gcp", false},
		{"another name", change("b = var.a", "bb = var.a"), 9, "local.bb job.c", "var.a local.bb job.c provider.gcp", true},
		{"the same name", change(`job "d"`, `job "c"`), 9, "job.c job.c", "var.a local.b job.c job.c provider.gcp", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed, symbols := tt.after.Changed(before)
			affected, needed, all := tt.after.Affected(changed, symbols, tt.most)
			names := func(parts map[*Part]bool) string {
				var found []string
				tt.after.each(func(p *Part) {
					for _, d := range p.Declares {
						if parts[p] {
							found = append(found, string(d.Symbol))
						}
					}
				})
				return strings.Join(found, " ")
			}
			if got := names(affected); got != tt.affected || all != tt.all {
				t.Errorf("affected: %s (all: %v), want %s (%v)", got, all, tt.affected, tt.all)
			}
			if got := names(needed); got != tt.needed {
				t.Errorf("needed: %s, want %s", got, tt.needed)
			}
		})
	}
}

// FuzzEdit: no text and no edit makes it panic.
func FuzzEdit(f *testing.F) {
	examples, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(examples) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, 10, 20, "}\n")
	}
	f.Fuzz(func(t *testing.T, text []byte, start, end int, insert string) {
		file := Parse("main.hcl", text).Edit(Edit{start, end, []byte(insert)})
		checkWhole(t, file)
		for _, p := range file.Parts {
			if p.Broken() && !p.Errors("main.hcl").HasErrors() {
				t.Fatalf("a broken part has no error: %q", p.Text)
			}
		}
	})
}
