package outline

import (
	"bytes"
	"unicode/utf8"
)

// Point is a place as editors count: lines from 0, and UTF-16 code units in the line.
type Point struct{ Line, Unit int }

// Offset is the byte at a point; behind the end of its line or of the file, that end.
func (f *File) Offset(p Point) int {
	if len(f.Parts) == 0 || p.Line < 0 {
		return 0
	}
	part := f.Parts[f.PartOfLine(p.Line+1)]
	at := part.Byte
	for line := part.Line - 1; line < p.Line; line++ {
		next := bytes.IndexByte(f.Text[at:], '\n')
		if next < 0 {
			return len(f.Text)
		}
		at += next + 1
	}
	for units := 0; units < p.Unit && at < len(f.Text) && f.Text[at] != '\n'; {
		r, size := utf8.DecodeRune(f.Text[at:])
		units += unitsOf(r)
		at += size
	}
	return at
}

// Point is the place of a byte.
func (f *File) Point(offset int) Point {
	offset = min(max(offset, 0), len(f.Text))
	if len(f.Parts) == 0 {
		return Point{}
	}
	part := f.Parts[f.PartAt(offset)]
	before := f.Text[part.Byte:offset]
	p := Point{Line: part.Line - 1 + bytes.Count(before, []byte("\n"))}
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	for len(before) > 0 {
		r, size := utf8.DecodeRune(before)
		p.Unit += unitsOf(r)
		before = before[size:]
	}
	return p
}

// unitsOf is how many UTF-16 code units a character has.
func unitsOf(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}
