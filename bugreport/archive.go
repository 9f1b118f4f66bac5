package bugreport

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a report, in bytes.
const (
	maxFile  = 8 << 20
	maxTotal = 64 << 20
	// margin is read before the end of a file that is taken: in it begins a secret that the cut goes through.
	margin = 64 << 10
)

// file is a file of the archive.
type file struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	Masked int    `json:"masked_places,omitempty"`
	Note   string `json:"note,omitempty"`

	data []byte
}

// section is what one collector found.
type section struct {
	Name    string `json:"name"`
	Took    string `json:"took"`
	Problem string `json:"problem,omitempty"` // what could not be collected, and why
	Files   []file `json:"-"`
}

// sink takes the files of one collector, until it is closed: a collector that is given up may still run.
type sink struct {
	redact *redactor

	mu     sync.Mutex
	closed bool
	files  map[string]file
	notes  []string
}

// add adds a file, whose secrets are masked before it is cut.
func (s *sink) add(name string, data []byte) { s.addTail(name, data, maxFile) }

// addTail adds the end of a file, from the beginning of a line on.
func (s *sink) addTail(name string, data []byte, most int) {
	f := file{Name: safeName(s.redact.text(name))}
	whole := len(data)
	data = data[max(0, whole-most-margin):]
	f.data, f.Masked = s.redact.bytes(regexp.MustCompile(`[\x00 ]{200,}`).ReplaceAll(data, nil))
	if over := len(f.data) - most; over > 0 {
		f.Note = fmt.Sprintf("the last %s of %s", size(most), size(whole))
		f.data = f.data[over:]
		if at := bytes.IndexByte(f.data, '\n'); at >= 0 && at < len(f.data)-1 {
			f.data = f.data[at+1:]
		}
	}
	f.Bytes = len(f.data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		f.Name = s.unused(f.Name)
		s.files[f.Name] = f
	}
}

// unused is a name that no file has yet: masked names may be the same.
func (s *sink) unused(name string) string {
	for n := 2; ; n++ {
		if _, taken := s.files[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%s~%d", strings.TrimSuffix(name, fmt.Sprintf("~%d", n-1)), n)
	}
}

// note states what is missing of a collector's files.
func (s *sink) note(format string, args ...any) {
	text := s.redact.text(fmt.Sprintf(format, args...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && len(s.notes) < 20 {
		s.notes = append(s.notes, text)
	}
}

// close ends the sink and returns what it has.
func (s *sink) close() (files []file, notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.SortedFunc(maps.Values(s.files), func(a, b file) int { return cmp.Compare(a.Name, b.Name) }), s.notes
}

// safeName is a relative path of plain characters.
func safeName(name string) string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		part = strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == '~' {
				return c
			}
			return '-'
		}, part)
		if part = strings.TrimLeft(part, "."); part != "" {
			parts = append(parts, part[:min(len(part), 120)])
		}
	}
	return strings.Join(parts, "/")
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// pack writes files as a gzipped tar archive.
func pack(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: "fray-bug-report/" + f.Name, Mode: 0o600, Size: int64(len(f.data)), ModTime: at, Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return out.Bytes(), err
}
