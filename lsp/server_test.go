package lsp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang/format"
)

const small = `variable "corpus" {
  description = "where the 🚀 text is"
  default     = "gs://corpus"
}

module "pool" {
  source = "./pool"
  size   = 3
}

job "train" {
  command = ["python", "🚀🚀", var.corpus]
}
`

const smallPool = `variable "size" {
  type = number
}

output "double" {
  value = var.size * 2
}
`

func smallStack() map[string]string {
	return map[string]string{"fray.hcl": small, "pool/main.hcl": smallPool}
}

// TestUnsavedDiagnostics: diagnostics are of what is in the buffers, at columns of UTF-16.
func TestUnsavedDiagnostics(t *testing.T) {
	t.Parallel()
	e := newEditor(t, smallStack())
	e.open("fray.hcl")
	e.diagnostics("fray.hcl", none)
	e.replace("fray.hcl", `"🚀🚀", var.corpus`, `"🚀🚀", var.corpu`)
	d := e.diagnostics("fray.hcl", saying("Reference to nothing"))[0]
	if want := (span{position{11, 31}, position{11, 40}}); d.Range != want || d.Severity != severityError || !strings.Contains(d.Message, `Did you mean "corpus"?`) {
		t.Errorf("got %+v, want it at %v", d, want)
	}
	e.replace("fray.hcl", "var.corpu]", "var.corpus]")
	e.diagnostics("fray.hcl", none)
}

// TestSyntaxErrors: an error of the syntax stands alone, as with fray validate, and the rest is
// back after it.
func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	e := newEditor(t, smallStack())
	e.open("fray.hcl")
	e.replace("fray.hcl", "size   = 3", "sise   = 3")
	two := func(diags []diagnostic) bool { return len(diags) == 2 }
	e.diagnostics("fray.hcl", two) // unknown, and missing
	e.replace("fray.hcl", "default     =", "default     ")
	for _, d := range e.diagnostics("fray.hcl", func(d []diagnostic) bool { return len(d) > 0 }) {
		if strings.Contains(d.Message, "sise") {
			t.Errorf("besides the error of the syntax: %+v", d)
		}
	}
	e.replace("fray.hcl", "default     ", "default     =")
	e.diagnostics("fray.hcl", two)
}

// TestModules: an edit of a module that is not saved is seen where it is used, and the other way.
func TestModules(t *testing.T) {
	t.Parallel()
	e := newEditor(t, smallStack())
	e.open("fray.hcl")
	e.diagnostics("fray.hcl", none)
	e.open("pool/main.hcl")
	e.diagnostics("pool/main.hcl", none)
	e.replace("pool/main.hcl", `variable "size"`, `variable "count_of"`)
	e.diagnostics("fray.hcl", func(diags []diagnostic) bool {
		return len(diags) > 0 && strings.Contains(diags[0].Message, "count_of")
	})
	e.replace("pool/main.hcl", `variable "count_of"`, `variable "size"`)
	e.diagnostics("fray.hcl", none)

	var found location
	e.call("textDocument/definition", e.at("fray.hcl", "  siz"), &found)
	if want := (location{e.uri("pool/main.hcl"), span{position{0, 9}, position{0, 15}}}); found != want {
		t.Errorf("the argument is declared at %+v, want %+v", found, want)
	}
}

// TestOtherFiles: files beside the open one count, those that are open nowhere too, and their
// diagnostics are published; a change on the disk is seen.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	e := newEditor(t, map[string]string{"a.hcl": "output \"a\" {\n  value = var.b\n}\n", "b.hcl": "variable \"b\" {\n  nonsense = 1\n}\n"})
	e.open("a.hcl")
	e.diagnostics("b.hcl", saying("Unknown attribute"))
	path := filepath.Join(e.dir, "b.hcl")
	if err := os.WriteFile(path, []byte("variable \"b\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": e.uri("b.hcl"), "type": 2}}})
	e.diagnostics("b.hcl", none)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	e.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
	e.diagnostics("a.hcl", saying("Reference to nothing"))
}

// TestNewFile: a buffer counts before it is a file, even in a directory that is not there.
func TestNewFile(t *testing.T) {
	t.Parallel()
	e := newEditor(t, map[string]string{"a.hcl": "output \"a\" {\n  value = var.b\n}\n"})
	e.open("a.hcl")
	e.diagnostics("a.hcl", saying("Reference to nothing"))
	e.openText("b.hcl", "variable \"b\" {}\n")
	e.diagnostics("a.hcl", none)
	e.notify("textDocument/didClose", documentParams{documentID{URI: e.uri("b.hcl")}})
	e.diagnostics("a.hcl", saying("Reference to nothing"))
	e.openText("untitled:Untitled-1", "job \"u\" {\r\n  \"🚀\" = 1\r\n}\r\n")
	e.diagnostics("untitled:Untitled-1", func(d []diagnostic) bool { return len(d) > 0 && d[0].Range.Start.Line == 1 })
	e.openText("new/c.hcl", "job \"c\" {\n}\n")
	e.diagnostics("new/c.hcl", saying("Missing attribute"))
	e.notify("textDocument/didClose", documentParams{documentID{URI: e.uri("new/c.hcl")}})
	e.diagnosticsOfClosed("new/c.hcl", none)
}

// TestFilesBeside: tests and variable files are checked too.
func TestFilesBeside(t *testing.T) {
	t.Parallel()
	e := newEditor(t, map[string]string{"a.hcl": "variable \"b\" {\n  type = number\n}\n"})
	e.openText("a.fraytest.hcl", "run \"a\" {\n")
	e.diagnostics("a.fraytest.hcl", func(d []diagnostic) bool { return len(d) > 0 })
	e.openText("fray.frayvars", "b = \"x\"\n")
	e.diagnostics("fray.frayvars", func(d []diagnostic) bool { return len(d) > 0 && strings.Contains(d[0].Message, "number") })
}

func TestFormatting(t *testing.T) {
	t.Parallel()
	e := newEditor(t, map[string]string{"a.hcl": "variable \"a\" { # 🚀\n}\n\noutput \"b\" {\n    value=\"${var.a}\"\n}\n"})
	e.open("a.hcl")
	var edits []textEdit
	e.call("textDocument/formatting", documentParams{documentID{URI: e.uri("a.hcl")}}, &edits)
	if len(edits) != 1 || edits[0].Range != (span{position{4, 0}, position{5, 0}}) {
		t.Fatalf("got %+v, want the fifth line alone", edits)
	}
	want, _ := format.Source([]byte(e.texts["a.hcl"]), "a.hcl")
	lines := strings.SplitAfter(e.texts["a.hcl"], "\n")
	if got := strings.Join(lines[:4], "") + edits[0].NewText + lines[5]; got != string(want) {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	e.replace("a.hcl", "value=", "value")
	e.call("textDocument/formatting", documentParams{documentID{URI: e.uri("a.hcl")}}, &edits)
	if len(edits) != 0 {
		t.Errorf("a broken file is changed: %+v", edits)
	}
}

func TestHoverAndSymbols(t *testing.T) {
	t.Parallel()
	e := newEditor(t, smallStack())
	e.open("fray.hcl")
	var text hover
	e.call("textDocument/hover", e.at("fray.hcl", "🚀🚀\", var.cor"), &text)
	if !strings.Contains(text.Contents.Value, "where the 🚀 text is") || text.Range != (span{position{11, 35}, position{11, 41}}) {
		t.Errorf("got %+v", text)
	}
	var symbols []documentSymbol
	e.call("textDocument/documentSymbol", documentParams{documentID{URI: e.uri("fray.hcl")}}, &symbols)
	if len(symbols) != 3 || symbols[2].Name != "job.train" || symbols[2].Range != (span{position{10, 0}, position{12, 1}}) {
		t.Errorf("got %+v", symbols)
	}
	var list completionList
	e.call("textDocument/completion", e.at("fray.hcl", "🚀🚀\", var."), &list)
	if len(list.Items) != 1 || list.Items[0].TextEdit != (textEdit{span{position{11, 35}, position{11, 41}}, "corpus"}) {
		t.Errorf("got %+v", list)
	}
}

// TestLargeStack: in a large configuration what a change affects is checked at once, and
// everything after the pause.
func TestLargeStack(t *testing.T) {
	t.Parallel()
	const blocks = 4 * wholeUpTo
	e := newEditor(t, largeStack(blocks, 2))
	e.open("f00.hcl")
	e.diagnostics("f00.hcl", none)
	e.replace("f00.hcl", `"--worker=7"`, `var.corpse`)
	at := e.diagnostics("f00.hcl", saying("Reference to nothing"))[0].Range
	e.replace("f00.hcl", "job \"shard3\" {\n", "job \"shard3\" {\n\n\n")
	moved := at
	moved.Start.Line += 2
	moved.End.Line += 2
	e.diagnostics("f00.hcl", func(d []diagnostic) bool { return len(d) == 1 && d[0].Range == moved })
	e.replace("f00.hcl", "var.corpse", `"--worker=7"`)
	e.diagnostics("f00.hcl", none)
	e.replace("f00.hcl", `variable "corpus"`, `variable "corpse"`)
	e.diagnostics("f00.hcl", func(d []diagnostic) bool { return len(d) >= blocks/2 })
	e.replace("f00.hcl", `variable "corpse"`, `variable "corpus"`)
	e.diagnostics("f00.hcl", none)
}

func TestExit(t *testing.T) {
	t.Parallel()
	e := newEditor(t, smallStack())
	e.open("fray.hcl")
	if err := e.exit(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestEditorGone: the server ends when its input does, without having been told.
func TestEditorGone(t *testing.T) {
	t.Parallel()
	e := newEditor(t, smallStack())
	e.open("fray.hcl")
	e.closeIn()
	if err := <-e.ended; !errors.Is(err, ErrNotShutDown) {
		t.Errorf("it ended with %v", err)
	}
}

// TestURIs: a path is that of its URI, whatever the editor encodes; a buffer without a file has one.
func TestURIs(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"file:///a/b%20c/%F0%9F%9A%80.hcl": "/a/b c/🚀.hcl",
		"file:///a/%2E%2E/b.hcl":           "/b.hcl",
		"untitled:Untitled-1":              "/untitled/Untitled-1/buffer.hcl",
		"%zz":                              "/untitled/%25zz/buffer.hcl",
	} {
		if got := pathOf(uri); got != want {
			t.Errorf("%s is %s, want %s", uri, got, want)
		}
	}
}

func (e *editor) diagnosticsOfClosed(name string, want func([]diagnostic) bool) {
	e.t.Helper()
	for {
		select {
		case p := <-e.published:
			if p.URI == e.uri(name) && p.Version == nil && want(p.Diagnostics) {
				return
			}
		case <-time.After(5 * time.Minute):
			e.t.Fatalf("no such diagnostics of %s", name)
		}
	}
}

// TestManyDiagnostics: of thousands of diagnostics the errors come first, and one counts the rest.
func TestManyDiagnostics(t *testing.T) {
	t.Parallel()
	e := newEditor(t, map[string]string{"fray.hcl": strings.Repeat("output \"a\" {\n  value = var.b\n}\n", 1200)})
	e.open("fray.hcl")
	found := e.diagnostics("fray.hcl", func(d []diagnostic) bool { return len(d) > 0 })
	last := found[len(found)-1]
	if len(found) != maxDiagnostics+1 || !strings.HasPrefix(last.Message, "200 more ") {
		t.Errorf("%d diagnostics, the last is %q; want %d and one that counts 200 more", len(found), last.Message, maxDiagnostics)
	}
	e.replace("fray.hcl", e.texts["fray.hcl"], "variable \"_b\" {\n}\n")
	e.diagnostics("fray.hcl", none)
}
