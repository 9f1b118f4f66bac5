package outline

import (
	"bytes"
	"slices"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/syntax"
)

// File is the text of a file and its parts.
type File struct {
	Name  string // as diagnostics name it
	Text  []byte
	Parts []Placed
}

// Placed is a part and where it begins.
type Placed struct {
	*Part

	Line int // the first is 1
	Byte int
}

// Edit replaces the bytes from Start to End.
type Edit struct {
	Start, End int
	Text       []byte
}

// Parse is the outline of a text. Where the text is not valid as a whole, it is cut at
// lines that begin like a block of a file, so that one broken block leaves the others as
// they are.
func Parse(name string, text []byte) *File {
	f := &File{Name: name, Text: text}
	body := parseAt(text, name, hcl.InitialPos)
	var cuts []int
	if body != nil {
		cuts = cutsOfBody(text, body)
	} else {
		cuts = cutsOfLines(text)
	}
	for i, cut := range cuts {
		end := len(text)
		if i+1 < len(cuts) {
			end = cuts[i+1]
		}
		f.append(newPart(text[cut:end], within(body, cut, end), Position{f.next(), cut, name}))
	}
	return f
}

// next is the line after the last part.
func (f *File) next() int {
	if len(f.Parts) == 0 {
		return 1
	}
	last := f.Parts[len(f.Parts)-1]
	return last.Line + last.lines
}

func (f *File) append(p *Part) {
	placed := Placed{Part: p, Line: 1}
	if len(f.Parts) > 0 {
		last := f.Parts[len(f.Parts)-1]
		placed.Line, placed.Byte = last.Line+last.lines, last.Byte+len(last.Text)
	}
	f.Parts = append(f.Parts, placed)
}

// Edit returns the file with some edits made, one after the other. Parts that no edit
// touches are those of f.
func (f *File) Edit(edits ...Edit) *File {
	for _, e := range edits {
		f = f.edit(e)
	}
	return f
}

func (f *File) edit(e Edit) *File {
	e.Start = min(max(e.Start, 0), len(f.Text))
	e.End = min(max(e.End, e.Start), len(f.Text))
	text := slices.Concat(f.Text[:e.Start], e.Text, f.Text[e.End:])
	first, last := f.touched(e)
	if first < 0 {
		return Parse(f.Name, text)
	}
	from := f.Parts[first].Byte
	to := f.Parts[last].Byte + len(f.Parts[last].Text) + len(text) - len(f.Text)
	next := &File{Name: f.Name, Text: text, Parts: slices.Clone(f.Parts[:first])}
	middle := Parse(f.Name, text[from:to])
	for _, p := range middle.Parts {
		next.append(p.Part)
	}
	for _, p := range f.Parts[last+1:] {
		next.append(p.Part)
	}
	if len(next.Parts) == 0 {
		return Parse(f.Name, text)
	}
	return next
}

// touched are the first and the last part that an edit changes, -1 if there are no parts.
// An edit at the first byte of a part may join it with the part before, whose last line it
// then ends.
func (f *File) touched(e Edit) (first, last int) {
	if len(f.Parts) == 0 {
		return -1, -1
	}
	first = f.PartAt(e.Start)
	last = max(first, f.PartAt(e.End))
	if first > 0 && e.Start == f.Parts[first].Byte {
		first--
	}
	return first, last
}

// PartAt is the number of the part that has a byte; the end of the file belongs to the last.
func (f *File) PartAt(offset int) int {
	return max(0, sort.Search(len(f.Parts), func(i int) bool { return f.Parts[i].Byte > offset })-1)
}

// PartOfLine is the number of the part that has a line.
func (f *File) PartOfLine(line int) int {
	return max(0, sort.Search(len(f.Parts), func(i int) bool { return f.Parts[i].Line > line })-1)
}

// Broken reports whether a part does not parse.
func (f *File) Broken() bool {
	return slices.ContainsFunc(f.Parts, func(p Placed) bool { return p.Broken() })
}

// Body is what some parts of a file contain, without what does not parse. Its ranges have
// the lines of the file, and bytes as if each part began where starts has it: parts that
// keep their line are not parsed again.
func (f *File) Body(take func(part int) bool) (whole *hclsyntax.Body, starts []int) {
	end := hcl.Pos{Line: f.next(), Column: 1, Byte: len(f.Text)}
	body := &hclsyntax.Body{
		Attributes: hclsyntax.Attributes{},
		SrcRange:   hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: end},
		EndRange:   hcl.Range{Filename: f.Name, Start: end, End: end},
	}
	starts = make([]int, len(f.Parts))
	for i, p := range f.Parts {
		starts[i] = p.Byte
		if p.Broken() || !take(i) {
			continue
		}
		parsed := p.in(f.Name)
		starts[i] = parsed.Byte
		for name, a := range parsed.body.Attributes {
			if body.Attributes[name] == nil {
				body.Attributes[name] = a
			}
		}
		body.Blocks = append(body.Blocks, parsed.body.Blocks...)
	}
	return body, starts
}

// HasAttributes reports whether an attribute stands outside of blocks.
func (f *File) HasAttributes() bool {
	return slices.ContainsFunc(f.Parts, func(p Placed) bool { return p.attributes })
}

// parseAt is the body of a text that begins at a position, nil if it does not parse.
func parseAt(text []byte, name string, at hcl.Pos) *hclsyntax.Body {
	if syntax.CheckConfig(text, name).HasErrors() {
		return nil
	}
	file, diags := hclsyntax.ParseConfig(text, name, at)
	if diags.HasErrors() {
		return nil
	}
	body := file.Body.(*hclsyntax.Body)
	syntax.Adapt(body)
	return body
}

// within is what of a body begins between two bytes.
func within(body *hclsyntax.Body, from, to int) *hclsyntax.Body {
	if body == nil {
		return nil
	}
	part := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: body.SrcRange, EndRange: body.EndRange}
	for name, a := range body.Attributes {
		if from <= a.SrcRange.Start.Byte && a.SrcRange.Start.Byte < to {
			part.Attributes[name] = a
		}
	}
	first := sort.Search(len(body.Blocks), func(i int) bool { return body.Blocks[i].TypeRange.Start.Byte >= from })
	for _, b := range body.Blocks[first:] {
		if b.TypeRange.Start.Byte >= to {
			break
		}
		part.Blocks = append(part.Blocks, b)
	}
	return part
}

// cutsOfBody cuts before the line of each block.
func cutsOfBody(text []byte, body *hclsyntax.Body) []int {
	cuts := []int{0}
	for _, b := range body.Blocks {
		line := bytes.LastIndexByte(text[:b.TypeRange.Start.Byte], '\n') + 1
		if line > cuts[len(cuts)-1] {
			cuts = append(cuts, line)
		}
	}
	return withoutAttributes(cuts, body)
}

// withoutAttributes removes the cuts within attributes outside of blocks, which may span lines.
func withoutAttributes(cuts []int, body *hclsyntax.Body) []int {
	for _, a := range body.Attributes {
		cuts = slices.DeleteFunc(cuts, func(cut int) bool { return cut > a.SrcRange.Start.Byte && cut < a.SrcRange.End.Byte })
	}
	return cuts
}

// cutsOfLines cuts before each line that begins like a block of a file.
func cutsOfLines(text []byte) []int {
	cuts, types := []int{0}, blockTypes()
	for at := 0; at < len(text); {
		if at > 0 && beginsBlock(text[at:], types) {
			cuts = append(cuts, at)
		}
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	return cuts
}
