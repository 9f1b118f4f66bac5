package lsp

import (
	"encoding/json"

	"github.com/fray-ml/fray/lang/outline"
)

// The messages that the server takes and sends, as
// https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/
// has them. Fields that the server does not use are left out.

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"` // in UTF-16 code units
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

type documentID struct {
	URI     string `json:"uri"`
	Version int    `json:"version"`
}

type initializeParams struct {
	Capabilities struct {
		TextDocument struct {
			Completion struct {
				CompletionItem struct {
					SnippetSupport bool `json:"snippetSupport"`
				} `json:"completionItem"`
			} `json:"completion"`
		} `json:"textDocument"`
	} `json:"capabilities"`
}

type initializeResult struct {
	Capabilities capabilities `json:"capabilities"`
	ServerInfo   serverInfo   `json:"serverInfo"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type capabilities struct {
	PositionEncoding   string             `json:"positionEncoding"`
	TextDocumentSync   textDocumentSync   `json:"textDocumentSync"`
	CompletionProvider completionProvider `json:"completionProvider"`
	Hover              bool               `json:"hoverProvider"`
	Definition         bool               `json:"definitionProvider"`
	Formatting         bool               `json:"documentFormattingProvider"`
	Symbols            bool               `json:"documentSymbolProvider"`
}

// syncIncremental: the editor sends what changes.
const syncIncremental = 2

type textDocumentSync struct {
	OpenClose bool `json:"openClose"`
	Change    int  `json:"change"`
	Save      bool `json:"save"`
}

type completionProvider struct {
	TriggerCharacters []string `json:"triggerCharacters"`
}

type didOpenParams struct {
	TextDocument struct {
		documentID

		Text string `json:"text"`
	} `json:"textDocument"`
}

type didChangeParams struct {
	TextDocument   documentID `json:"textDocument"`
	ContentChanges []struct {
		Range *span  `json:"range"` // nil: the whole text
		Text  string `json:"text"`
	} `json:"contentChanges"`
}

type documentParams struct {
	TextDocument documentID `json:"textDocument"`
}

type placeParams struct {
	TextDocument documentID `json:"textDocument"`
	Position     position   `json:"position"`
}

type cancelParams struct {
	ID json.RawMessage `json:"id"`
}

type publishDiagnosticsParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type diagnostic struct {
	Range    span   `json:"range"`
	Severity int    `json:"severity"`
	Source   string `json:"source"`
	Message  string `json:"message"`
}

type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []completionItem `json:"items"`
}

type completionItem struct {
	Label         string   `json:"label"`
	Kind          int      `json:"kind"`
	Detail        string   `json:"detail,omitempty"`
	Documentation *markup  `json:"documentation,omitempty"`
	SortText      string   `json:"sortText"`
	FilterText    string   `json:"filterText,omitempty"`
	Format        int      `json:"insertTextFormat"`
	TextEdit      textEdit `json:"textEdit"`
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

func markdown(text string) *markup {
	if text == "" {
		return nil
	}
	return &markup{Kind: "markdown", Value: text}
}

type hover struct {
	Contents *markup `json:"contents"`
	Range    span    `json:"range"`
}

type documentSymbol struct {
	Name           string           `json:"name"`
	Detail         string           `json:"detail,omitempty"`
	Kind           int              `json:"kind"`
	Range          span             `json:"range"`
	SelectionRange span             `json:"selectionRange"`
	Children       []documentSymbol `json:"children,omitempty"`
}

func (p position) point() outline.Point { return outline.Point{Line: p.Line, Unit: p.Character} }

func positionOf(f *outline.File, offset int) position {
	p := f.Point(offset)
	return position{p.Line, p.Unit}
}

func spanOf(f *outline.File, from, to int) span {
	return span{positionOf(f, from), positionOf(f, max(from, to))}
}
