package console

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/term"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
)

// Ctrl-C drops the line that is being typed, wherever the cursor is in it, and
// none that was finished before, although all came at once.
func TestKeyboard(t *testing.T) {
	keys := &keyboard{in: strings.NewReader("one\r" + "two\x1b[D\x1b[D\x03" + "three\r\x03")}
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, io.Discard}, "")
	var got []string
	for {
		line, err := terminal.ReadLine()
		if err != nil {
			break
		}
		if keys.dropped {
			keys.dropped = false
			line += "(dropped)"
		}
		got = append(got, line)
	}
	if want := []string{"one", "(dropped)", "three", "(dropped)"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestComplete(t *testing.T) {
	dir := t.TempDir()
	config := `
		variable "rollouts" { default = 1 }
		variable "rounds" { default = 1 }
		locals { rate = 1 }
		job "train" { command = ["true"] }
		job "many" {
			count   = 2
			command = ["true"]
		}
		output "o" { value = 1 }
	`
	if err := os.WriteFile(filepath.Join(dir, "fray.hcl"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	src, diags := lang.Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	scope, diags := src.Scope(eval.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := &Console{scope: scope}
	tests := map[string]struct {
		line    string
		pos     int
		want    string
		wantPos int
		choices []string
	}{
		"unique":               {line: "var.rol", pos: 7, want: "var.rollouts", wantPos: 12},
		"as far as they agree": {line: "1 + var.r", pos: 9, want: "1 + var.ro", wantPos: 10},
		"choices":              {line: "var.ro", pos: 6, want: "var.ro", wantPos: 6, choices: []string{"var.rollouts", "var.rounds"}},
		"root":                 {line: "loc", pos: 3, want: "local.", wantPos: 6},
		"in the middle":        {line: "upper(loca)", pos: 10, want: "upper(local.)", wantPos: 12},
		"function":             {line: "strcon", pos: 6, want: "strcontains(", wantPos: 12},
		"attribute":            {line: "job.train.addresse", pos: 18, want: "job.train.addresses", wantPos: 19},
		"one of many":          {line: "job.ma", pos: 6, want: "job.many", wantPos: 8},
		"output":               {line: "output.", pos: 7, want: "output.o", wantPos: 8},
		"nothing":              {line: "nosuch", pos: 6, want: "nosuch", wantPos: 6},
	}
	for name, tt := range tests {
		line, pos, choices := c.complete(tt.line, tt.pos)
		if line != tt.want || pos != tt.wantPos || !slices.Equal(choices, tt.choices) {
			t.Errorf("%s: complete(%q, %d) = %q, %d, %q; want %q, %d, %q", name, tt.line, tt.pos, line, pos, choices, tt.want, tt.wantPos, tt.choices)
		}
	}
}
