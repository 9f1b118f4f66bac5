package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
)

// editor is a client of a server in this process.
type editor struct {
	t         testing.TB
	dir       string
	client    *jrpc2.Client
	published chan publishDiagnosticsParams
	texts     map[string]string
	versions  map[string]int
	ended     chan error
	closeIn   func()
}

// newEditor starts a server for a directory with some files.
func newEditor(t testing.TB, files map[string]string) *editor {
	t.Helper()
	return newEditorPausing(t, files, time.Millisecond)
}

func newEditorPausing(t testing.TB, files map[string]string, pause time.Duration) *editor {
	t.Helper()
	dir := directoryOf(t, files)
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	e := connect(t, dir, out, in)
	go func() {
		err := Serve(context.Background(), Options{In: toServer, Out: fromServer, Dir: dir, Version: "test", Pause: pause})
		_ = fromServer.Close()
		e.ended <- err
	}()
	e.initialize()
	return e
}

// directoryOf is a directory with some files.
func directoryOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// connect is an editor over the streams of a server.
func connect(t testing.TB, dir string, out io.Reader, in io.WriteCloser) *editor {
	e := &editor{
		t: t, dir: dir, texts: map[string]string{}, versions: map[string]int{}, ended: make(chan error, 1),
		published: make(chan publishDiagnosticsParams, 1000), closeIn: func() { _ = in.Close() },
	}
	e.client = jrpc2.NewClient(channel.LSP(out, in), &jrpc2.ClientOptions{OnNotify: func(r *jrpc2.Request) {
		var p publishDiagnosticsParams
		if err := r.UnmarshalParams(&p); err != nil {
			t.Error(err)
		}
		e.published <- p
	}})
	t.Cleanup(func() {
		e.closeIn()
		_ = e.client.Close()
	})
	return e
}

func (e *editor) initialize() {
	e.t.Helper()
	var result initializeResult
	e.call("initialize", json.RawMessage(`{"capabilities":{"textDocument":{"completion":{"completionItem":{"snippetSupport":true}}}}}`), &result)
	e.notify("initialized", struct{}{})
}

func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	if err := e.client.CallResult(e.t.Context(), method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	if err := e.client.Notify(e.t.Context(), method, params); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

// uri is that of a file in the directory; a name with a scheme is one already.
func (e *editor) uri(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return "file://" + filepath.Join(e.dir, name)
}

// open opens a file of the disk.
func (e *editor) open(name string) {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		e.t.Fatal(err)
	}
	e.openText(name, string(text))
}

func (e *editor) openText(name, text string) {
	e.texts[name], e.versions[name] = text, 1
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": e.uri(name), "languageId": "fray", "version": 1, "text": text}})
}

// replace changes the only occurrence of a text in an open file.
func (e *editor) replace(name, old, anew string) {
	e.t.Helper()
	text := e.texts[name]
	if strings.Count(text, old) != 1 {
		e.t.Fatalf("%q stands %d times in %s", old, strings.Count(text, old), name)
	}
	at := strings.Index(text, old)
	rng := span{pointIn(text, at), pointIn(text, at+len(old))}
	e.texts[name] = text[:at] + anew + text[at+len(old):]
	e.versions[name]++
	e.notify("textDocument/didChange", map[string]any{
		"textDocument":   documentID{e.uri(name), e.versions[name]},
		"contentChanges": []any{map[string]any{"range": rng, "text": anew}},
	})
}

// pointIn counts lines and UTF-16 code units by the library's encoder.
func pointIn(text string, offset int) position {
	before := text[:offset]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return position{strings.Count(before, "\n"), len(utf16.Encode([]rune(line)))}
}

// at is the place behind a text that stands once in a file.
func (e *editor) at(name, text string) placeParams {
	e.t.Helper()
	if strings.Count(e.texts[name], text) != 1 {
		e.t.Fatalf("%q stands %d times in %s", text, strings.Count(e.texts[name], text), name)
	}
	return placeParams{documentID{e.uri(name), 0}, pointIn(e.texts[name], strings.Index(e.texts[name], text)+len(text))}
}

// diagnostics waits until those of the current version of a file are as wanted: a large
// configuration has more than one answer to an edit.
func (e *editor) diagnostics(name string, want func([]diagnostic) bool) []diagnostic {
	e.t.Helper()
	var last []diagnostic
	for {
		select {
		case p := <-e.published:
			if p.URI != e.uri(name) || p.Version != nil && *p.Version != e.versions[name] {
				continue
			}
			if last = p.Diagnostics; want(last) {
				return last
			}
		case <-time.After(5 * time.Minute):
			e.t.Fatalf("no such diagnostics of %s; the last are %+v", name, last)
		}
	}
}

func none(diags []diagnostic) bool { return len(diags) == 0 }

// saying wants one diagnostic that begins with a summary.
func saying(summary string) func([]diagnostic) bool {
	return func(diags []diagnostic) bool { return len(diags) == 1 && strings.HasPrefix(diags[0].Message, summary) }
}

// exit ends the server as editors do, and returns what it ended with.
func (e *editor) exit() error {
	e.t.Helper()
	var result json.RawMessage
	e.call("shutdown", nil, &result)
	e.notify("exit", nil)
	return <-e.ended
}
