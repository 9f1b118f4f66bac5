package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/outline"
	"github.com/fray-ml/fray/lsp/workspace"
)

// Options are what a server needs from outside.
type Options struct {
	In      io.Reader
	Out     io.Writer
	Dir     string // absolute: the directory of the process
	Version string
	Pause   time.Duration // without edits, after which all of a large configuration is checked; 0: 300 ms
}

// wholeUpTo is how many blocks a directory may have for all to be checked at each edit: they
// take a few milliseconds.
const wholeUpTo = 150

// shortPart is by what the pause is shorter after an edit that affects many blocks: it is still
// longer than the time between two keys that are held down.
const shortPart = 6

// patience is how long findings in other blocks than the edited ones wait while the user types without a pause.
const patience = 2 * time.Second

// ErrNotShutDown means that the editor went away without shutting the server down.
var ErrNotShutDown = errors.New("the editor ended the connection without a shutdown request")

// server is one connection to an editor.
type server struct {
	options   Options
	workspace *workspace.Workspace
	rpc       *jrpc2.Server
	language  lang.Language
	stop      context.CancelFunc

	mu       sync.Mutex
	uris     map[string]string // of open files, as the editor writes them, by path
	snippets bool
	shutDown bool
}

// Serve serves an editor until it sends exit, the stream ends, or the context is done.
func Serve(ctx context.Context, options Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if options.Pause == 0 {
		options.Pause = 300 * time.Millisecond
	}
	s := &server{options: options, stop: stop, uris: map[string]string{}, language: lang.Describe(options.Version)}
	s.workspace = workspace.New(ctx, workspace.Options{
		Base: options.Dir, Publish: s.publish, Whole: wholeUpTo, Pause: options.Pause, ShortPause: options.Pause / shortPart,
		Patience: patience,
	})
	s.rpc = jrpc2.NewServer(s.handlers(), &jrpc2.ServerOptions{AllowPush: true})
	s.rpc.Start(newStream(options.In, options.Out))
	ended := make(chan error, 1)
	go func() { ended <- s.rpc.Wait() }() // it may wait for a stream that the editor leaves open
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.rpc.Stop()
	}
	stop()
	s.workspace.Wait()
	if err != nil {
		return fmt.Errorf("read a message of the editor: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shutDown {
		return ErrNotShutDown
	}
	return nil
}

func (s *server) handlers() handler.Map {
	return handler.Map{
		"initialize":                       handler.New(s.initialize),
		"initialized":                      handler.New(s.ignore),
		"shutdown":                         handler.New(s.shutdown),
		"exit":                             handler.New(s.exit),
		"$/cancelRequest":                  handler.New(s.cancel),
		"$/setTrace":                       handler.New(s.ignore),
		"workspace/didChangeConfiguration": handler.New(s.ignore),
		"workspace/didChangeWatchedFiles":  handler.New(s.refresh),
		"textDocument/didOpen":             handler.New(s.didOpen),
		"textDocument/didChange":           handler.New(s.didChange),
		"textDocument/didSave":             handler.New(s.refresh),
		"textDocument/didClose":            handler.New(s.didClose),
		"textDocument/completion":          handler.New(s.completion),
		"textDocument/hover":               handler.New(s.hover),
		"textDocument/definition":          handler.New(s.definition),
		"textDocument/formatting":          handler.New(s.formatting),
		"textDocument/documentSymbol":      handler.New(s.symbols),
	}
}

func (s *server) initialize(_ context.Context, params initializeParams) (initializeResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snippets = params.Capabilities.TextDocument.Completion.CompletionItem.SnippetSupport
	return initializeResult{
		ServerInfo: serverInfo{Name: "fray", Version: s.options.Version},
		Capabilities: capabilities{
			PositionEncoding:   "utf-16",
			TextDocumentSync:   textDocumentSync{OpenClose: true, Change: syncIncremental, Save: true},
			CompletionProvider: completionProvider{TriggerCharacters: []string{".", `"`}},
			Hover:              true, Definition: true, Formatting: true, Symbols: true,
		},
	}, nil
}

func (s *server) ignore(context.Context, json.RawMessage) error { return nil }

func (s *server) refresh(context.Context, json.RawMessage) error {
	s.workspace.Refresh()
	return nil
}

func (s *server) shutdown(context.Context) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shutDown = true
	return nil, nil
}

func (s *server) exit(context.Context) error {
	s.stop()
	return nil
}

// cancel ends a request whose answer the editor no longer needs.
func (s *server) cancel(_ context.Context, params cancelParams) error {
	s.rpc.CancelRequest(string(params.ID))
	return nil
}

func (s *server) didOpen(_ context.Context, params didOpenParams) error {
	d := params.TextDocument
	path := pathOf(d.URI)
	s.mu.Lock()
	s.uris[path] = d.URI
	s.mu.Unlock()
	s.workspace.Open(path, d.Version, []byte(d.Text))
	return nil
}

func (s *server) didChange(_ context.Context, params didChangeParams) error {
	s.workspace.Change(pathOf(params.TextDocument.URI), params.TextDocument.Version, func(f *outline.File) *outline.File {
		for _, change := range params.ContentChanges {
			edit := outline.Edit{End: len(f.Text), Text: []byte(change.Text)}
			if change.Range != nil {
				edit.Start, edit.End = f.Offset(change.Range.Start.point()), f.Offset(change.Range.End.point())
			}
			f = f.Edit(edit)
		}
		return f
	})
	return nil
}

func (s *server) didClose(_ context.Context, params documentParams) error {
	s.workspace.Close(pathOf(params.TextDocument.URI))
	return nil
}

// publish sends the diagnostics of a file.
func (s *server) publish(p workspace.Published) {
	params := publishDiagnosticsParams{URI: s.uriOf(p.Path), Diagnostics: []diagnostic{}}
	if p.Open {
		params.Version = &p.Version
	}
	for _, d := range shownOf(p.Diags) {
		params.Diagnostics = append(params.Diagnostics, diagnosticOf(p.File, d))
	}
	if more := len(p.Diags) - len(params.Diagnostics); more > 0 {
		last := params.Diagnostics[maxDiagnostics-1]
		last.Message = fmt.Sprintf("%d more are not shown: fray validate lists all.", more)
		params.Diagnostics = append(params.Diagnostics, last)
	}
	// An editor that went away needs no diagnostics; that it did, the server sees by itself.
	_ = s.rpc.Notify(context.Background(), "textDocument/publishDiagnostics", params)
}

// maxDiagnostics is how many diagnostics of a file are shown: as many as Visual Studio Code
// takes. More would only make each keystroke slower.
const maxDiagnostics = 1000

// shownOf are the diagnostics of a file that are shown, of too many the errors first.
func shownOf(diags hcl.Diagnostics) hcl.Diagnostics {
	if len(diags) <= maxDiagnostics {
		return diags
	}
	byKind := map[hcl.DiagnosticSeverity]hcl.Diagnostics{}
	for _, d := range diags {
		byKind[d.Severity] = append(byKind[d.Severity], d)
	}
	return slices.Concat(byKind[hcl.DiagError], byKind[hcl.DiagWarning])[:maxDiagnostics]
}

// The severities of diagnostics.
const (
	severityError   = 1
	severityWarning = 2
)

func diagnosticOf(f *outline.File, d *hcl.Diagnostic) diagnostic {
	found := diagnostic{Severity: severityError, Source: "fray", Message: d.Summary + ": " + d.Detail}
	if d.Severity == hcl.DiagWarning {
		found.Severity = severityWarning
	}
	if of := diagnose.ModuleOf(d); of != "" {
		found.Message += " In " + of + "."
	}
	if d.Subject != nil && f != nil {
		found.Range = spanOf(f, d.Subject.Start.Byte, d.Subject.End.Byte)
	}
	return found
}

// pathOf is the path of a URI. A buffer that has no file yet is one in a directory of its own,
// which does not exist.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return filepath.Join("/", "untitled", url.PathEscape(uri), "buffer.hcl")
	case u.Scheme == "file":
		return filepath.Clean(u.Path)
	}
	return filepath.Join("/", u.Scheme, filepath.Clean("/"+u.Opaque+u.Path), "buffer.hcl")
}

// uriOf is the URI of a path: the editor's own, if the file is open.
func (s *server) uriOf(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if uri := s.uris[path]; uri != "" {
		return uri
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
