package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Kind is what is measured.
type Kind string

// The kinds of profiles.
const (
	CPU    Kind = "cpu"    // which functions processor time goes to
	Memory Kind = "memory" // which functions allocated what is in use
	Stacks Kind = "stacks" // where each thread is at one moment
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{CPU, Memory, Stacks} }

// Format is how a profile is written.
type Format string

// The formats of profiles.
const (
	Speedscope Format = "speedscope" // JSON of speedscope.app
	Pprof      Format = "pprof"      // a gzipped message of Go's pprof
	PlainText  Format = "text"       // stacks for people
)

// Ext is the ending of files of a format.
func (f Format) Ext() string {
	switch f {
	case Speedscope:
		return ".speedscope.json"
	case Pprof:
		return ".pb.gz"
	case PlainText:
	}
	return ".txt"
}

// ContentType is the media type of a format.
func (f Format) ContentType() string {
	switch f {
	case Speedscope:
		return "application/json; charset=utf-8"
	case Pprof:
		return "application/octet-stream"
	case PlainText:
	}
	return "text/plain; charset=utf-8"
}

// FormatOf is the format of a file by its name, false where no format has such files.
func FormatOf(name string) (Format, bool) {
	for _, f := range []Format{Speedscope, Pprof, PlainText} {
		if strings.HasSuffix(name, f.Ext()) {
			return f, true
		}
	}
	return "", false
}

// Header describes a profile. It is the first line of what a host sends, before the profile.
type Header struct {
	Kind    Kind   `json:"kind"`
	Format  Format `json:"format"`
	Tool    string `json:"tool"` // that measured, for people
	PID     int    `json:"pid"`
	Program string `json:"program"` // the name of the process's program
}

// Write writes the header as its line.
func (h Header) Write(w io.Writer) error {
	line, err := json.Marshal(h)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// Split divides what a host sent into header and profile.
func Split(sent []byte) (Header, []byte, error) {
	line, data, found := bytes.Cut(sent, []byte("\n"))
	var h Header
	if !found {
		return h, nil, errors.New("the host sent no profile")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, nil, fmt.Errorf("read the profile's header: %w", err)
	}
	h.Tool, h.Program = printable(h.Tool), printable(h.Program)
	return h, data, nil
}

// printable is a text of another machine without control characters, for a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}
