package terminal

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcled"

	terminaldiag "github.com/fray-ml/fray/terminal/diag"
)

// DiagnosticsJSON is the diagnostics of the files, as docs/validate-json.md
// describes it; the fields are Terraform's.
type DiagnosticsJSON struct {
	FormatVersion string           `json:"format_version"`
	Valid         bool             `json:"valid"`
	ErrorCount    int              `json:"error_count"`
	WarningCount  int              `json:"warning_count"`
	Diagnostics   []DiagnosticJSON `json:"diagnostics"`
}

// DiagnosticJSON is a diagnostic, as JSON documents have it.
type DiagnosticJSON struct {
	Severity string       `json:"severity"`
	Summary  string       `json:"summary"`
	Detail   string       `json:"detail"`
	Range    *rangeJSON   `json:"range,omitempty"`
	Snippet  *snippetJSON `json:"snippet,omitempty"`
}

type rangeJSON struct {
	Filename string       `json:"filename"`
	Start    positionJSON `json:"start"`
	End      positionJSON `json:"end"`
}

type positionJSON struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// snippetJSON is the source around a range, with the range marked by byte
// offsets into the code.
type snippetJSON struct {
	Context              *string              `json:"context"` // the block that it stands in
	Code                 string               `json:"code"`
	StartLine            int                  `json:"start_line"`
	HighlightStartOffset int                  `json:"highlight_start_offset"`
	HighlightEndOffset   int                  `json:"highlight_end_offset"`
	Values               []terminaldiag.Value `json:"values"`
}

// DiagnosticsAsJSON converts diagnostics, in the order of their places.
func DiagnosticsAsJSON(files map[string]*hcl.File, diags hcl.Diagnostics) DiagnosticsJSON {
	out := DiagnosticsJSON{FormatVersion: "1.0", Diagnostics: []DiagnosticJSON{}}
	for _, d := range terminaldiag.ByPlace(diags) {
		j := DiagnosticJSON{Severity: "error", Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			j.Severity = "warning"
			out.WarningCount++
		} else {
			out.ErrorCount++
		}
		if d.Subject != nil {
			j.Range = &rangeJSON{d.Subject.Filename, positionAsJSON(d.Subject.Start), positionAsJSON(d.Subject.End)}
			if file := files[d.Subject.Filename]; file != nil {
				j.Snippet = snippetOf(file, d)
			}
		}
		out.Diagnostics = append(out.Diagnostics, j)
	}
	out.Valid = out.ErrorCount == 0
	return out
}

func positionAsJSON(p hcl.Pos) positionJSON { return positionJSON{p.Line, p.Column, p.Byte} }

// maxSnippet bounds the bytes of code in a snippet.
const maxSnippet = 4 << 10

// snippetOf is the lines of a diagnostic's range; nil where the file has no
// such range, as when it has changed since.
func snippetOf(file *hcl.File, d *hcl.Diagnostic) *snippetJSON {
	src, from, to := file.Bytes, d.Subject.Start.Byte, d.Subject.End.Byte
	if from < 0 || from > to || to > len(src) {
		return nil
	}
	start := bytes.LastIndexByte(src[:from], '\n') + 1
	if from-start > maxSnippet/2 { // one endless line
		start = from
	}
	end := len(src)
	last := max(from, to-1) // a range that ends with a line does not reach into the next
	if newline := bytes.IndexByte(src[last:], '\n'); newline >= 0 {
		end = last + newline
	}
	end = runeEnd(src, min(end, start+maxSnippet))
	s := &snippetJSON{
		Code:                 strings.ToValidUTF8(string(src[start:end]), "\uFFFD"),
		StartLine:            d.Subject.Start.Line,
		HighlightStartOffset: min(from, end) - start,
		HighlightEndOffset:   min(to, end) - start,
		Values:               terminaldiag.Values(d),
	}
	if header := hcled.ContextString(file, from); header != "" {
		s.Context = &header
	}
	return s
}

// runeEnd moves a place back to the start of the character that it is within.
func runeEnd(src []byte, at int) int {
	for at > 0 && at < len(src) && !utf8.RuneStart(src[at]) {
		at--
	}
	return at
}

// DiagnosticsInJSON prints diagnostics as JSON on standard output, and returns
// ErrReported if any of them is an error.
func DiagnosticsInJSON(a *Terminal, files map[string]*hcl.File, diags hcl.Diagnostics) error {
	out := DiagnosticsAsJSON(files, diags)
	if err := a.PrintJSON(out); err != nil {
		return err
	}
	if !out.Valid {
		return ErrReported
	}
	return nil
}
