package lsp

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/fray-ml/fray/lang/format"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/outline"
	"github.com/fray-ml/fray/lang/query"
)

// query is the place of a request, nil in a file that is not open.
func (s *server) query(params placeParams) *query.Query {
	path := pathOf(params.TextDocument.URI)
	file := s.workspace.File(path)
	if file == nil {
		return nil
	}
	dir := filepath.Dir(path)
	return &query.Query{
		File: file, Offset: file.Offset(params.Position.point()), Language: &s.language,
		Files: s.workspace.Directory(dir), Module: func(source string) outline.Directory { return s.module(dir, source) },
	}
}

// module are the files of a module that is a directory.
func (s *server) module(dir, source string) outline.Directory {
	if !load.IsLocalModule(source) {
		return outline.Directory{}
	}
	if !filepath.IsAbs(source) {
		source = filepath.Join(dir, source)
	}
	return s.workspace.Directory(filepath.Clean(source))
}

// The kinds of completion items, by what is offered.
func itemKind(kind query.ItemKind) int {
	switch kind {
	case query.ItemBlock:
		return 7 // class
	case query.ItemAttribute:
		return 10 // property
	case query.ItemValue:
		return 12 // value
	case query.ItemReference:
		return 6 // variable
	case query.ItemFunction:
		return 3 // function
	}
	return 1 // text
}

// The formats of what a completion inserts.
const (
	formatPlain   = 1
	formatSnippet = 2
)

func (s *server) completion(_ context.Context, params placeParams) (completionList, error) {
	list := completionList{Items: []completionItem{}}
	q := s.query(params)
	if q == nil {
		return list, nil
	}
	items, more := q.Complete()
	list.IsIncomplete = more
	s.mu.Lock()
	snippets := s.snippets
	s.mu.Unlock()
	for i, item := range items {
		c := completionItem{
			Label: item.Label, Kind: itemKind(item.Kind), Detail: item.Detail, Documentation: markdown(item.Doc),
			SortText: fmt.Sprintf("%04d", i), Format: formatPlain,
			TextEdit: textEdit{spanOf(q.File, item.From, item.To), item.Insert},
		}
		switch {
		case item.Snippet && snippets:
			c.Format = formatSnippet
		case item.Snippet:
			c.TextEdit.NewText = item.Label
		}
		list.Items = append(list.Items, c)
	}
	return list, nil
}

func (s *server) hover(_ context.Context, params placeParams) (*hover, error) {
	q := s.query(params)
	if q == nil {
		return nil, nil
	}
	doc, from, to := q.Hover()
	if doc == "" {
		return nil, nil
	}
	return &hover{Contents: markdown(doc), Range: spanOf(q.File, from, to)}, nil
}

func (s *server) definition(_ context.Context, params placeParams) (*location, error) {
	q := s.query(params)
	if q == nil {
		return nil, nil
	}
	at, ok := q.Definition()
	if !ok {
		return nil, nil
	}
	return &location{URI: s.uriOf(s.workspace.Absolute(at.File)), Range: spanOf(at.File, at.From, at.To)}, nil
}

// formatting returns what fray fmt would change: no edit for a file that does not parse.
func (s *server) formatting(_ context.Context, params documentParams) ([]textEdit, error) {
	file := s.workspace.File(pathOf(params.TextDocument.URI))
	if file == nil {
		return nil, nil
	}
	out, diags := format.Source(file.Text, file.Name)
	if diags.HasErrors() || bytes.Equal(out, file.Text) {
		return []textEdit{}, nil
	}
	from, to, text := difference(file.Text, out)
	return []textEdit{{Range: spanOf(file, from, to), NewText: string(text)}}, nil
}

// difference is the bytes of a text to replace, and by what, to make it another one: whole
// lines, without those that are equal at the beginning and at the end.
func difference(before, after []byte) (from, to int, text []byte) {
	old, anew := bytes.SplitAfter(before, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
	to, end := len(before), len(after)
	for len(old) > 0 && len(anew) > 0 && bytes.Equal(old[0], anew[0]) {
		from += len(old[0])
		old, anew = old[1:], anew[1:]
	}
	for len(old) > 0 && len(anew) > 0 && bytes.Equal(old[len(old)-1], anew[len(anew)-1]) {
		to, end = to-len(old[len(old)-1]), end-len(anew[len(anew)-1])
		old, anew = old[:len(old)-1], anew[:len(anew)-1]
	}
	return from, to, after[from:end]
}

// The kinds of symbols, by the type of the block.
func symbolKind(typ string) int {
	switch typ {
	case "variable", "local":
		return 13 // variable
	case "output":
		return 7 // property
	case "module":
		return 2 // module
	case "data":
		return 18 // array
	case "job_group", "namespace":
		return 3 // namespace
	}
	return 5 // class
}

func (s *server) symbols(_ context.Context, params documentParams) ([]documentSymbol, error) {
	file := s.workspace.File(pathOf(params.TextDocument.URI))
	if file == nil {
		return nil, nil
	}
	return symbolsOf(query.Symbols(file)), nil
}

func symbolsOf(all []query.Symbol) []documentSymbol {
	found := []documentSymbol{}
	for _, d := range all {
		found = append(found, documentSymbol{
			Name: d.Name, Detail: d.Type, Kind: symbolKind(d.Type), Range: spanOf(d.Whole.File, d.Whole.From, d.Whole.To),
			SelectionRange: spanOf(d.At.File, d.At.From, d.At.To), Children: symbolsOf(d.Children),
		})
	}
	return found
}
