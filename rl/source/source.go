package source

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fray-ml/fray/rl"
)

// Source has items by their index.
type Source interface {
	Len() int
	// Item returns a new copy of an item, or an IndexError.
	Item(index int) (rl.Item, error)
}

// IndexError is an index outside of the data.
type IndexError struct{ Index, Length int }

func (e *IndexError) Error() string {
	return fmt.Sprintf("no item %d: the data have %d, from 0", e.Index, e.Length)
}

// Mock generates items: {"prompt": "mock prompt 7"}.
type Mock int

// Len is how many there are.
func (m Mock) Len() int { return int(m) }

// Item is one of them.
func (m Mock) Item(index int) (rl.Item, error) {
	if index < 0 || index >= int(m) {
		return nil, &IndexError{Index: index, Length: int(m)}
	}
	return rl.Item{"prompt": fmt.Sprintf("mock prompt %d", index)}, nil
}

// entry is where an item is: so many bytes of a file.
type entry struct {
	path   string
	line   int // 0: the whole file
	offset int64
	length int
}

// Files are items in files.
type Files struct{ entries []entry }

var (
	_ Source = Mock(0)
	_ Source = (*Files)(nil)
)

// JSONL are the lines of files, each an object. Empty lines count as none.
func JSONL(paths ...string) (*Files, error) {
	out := &Files{}
	for _, path := range paths {
		if err := out.addLines(path); err != nil {
			return nil, err
		}
	}
	if len(out.entries) == 0 {
		return nil, fmt.Errorf("no items in %s: want one JSON object per line", strings.Join(paths, ", "))
	}
	return out, nil
}

// Directory are the files of a directory, by name: each line of a .jsonl, each .json, and each .txt as
// {"name", "prompt"}. Other files and directories are left out.
func Directory(dir string) (*Files, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the data: %w", err)
	}
	out := &Files{}
	for _, file := range found {
		path := filepath.Join(dir, file.Name())
		switch ext := filepath.Ext(path); {
		case file.IsDir():
		case ext == ".jsonl":
			err = out.addLines(path)
		case ext == ".json", ext == ".txt":
			err = out.addFile(path)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out.entries) == 0 {
		return nil, fmt.Errorf("no items in %s: want .jsonl, .json or .txt files", dir)
	}
	return out, nil
}

// addLines appends the lines of a file, all of which must be objects.
func (f *Files) addLines(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the data: %w", err)
	}
	defer func() { _ = file.Close() }()
	reader := bufio.NewReader(file)
	var offset int64
	for line := 1; ; line++ {
		text, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the data: %w", err)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			e := entry{path: path, line: line, offset: offset, length: len(text)}
			if _, err := e.decode(text); err != nil {
				return err
			}
			f.entries = append(f.entries, e)
		}
		offset += int64(len(text))
		if err != nil {
			return nil
		}
	}
}

func (f *Files) addFile(path string) error {
	e := entry{path: path}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the data: %w", err)
	}
	if _, err := e.decode(text); err != nil {
		return err
	}
	f.entries = append(f.entries, e)
	return nil
}

// Len is how many items there are.
func (f *Files) Len() int { return len(f.entries) }

// Item reads one of them.
func (f *Files) Item(index int) (rl.Item, error) {
	if index < 0 || index >= len(f.entries) {
		return nil, &IndexError{Index: index, Length: len(f.entries)}
	}
	e := f.entries[index]
	text, err := e.read()
	if err != nil {
		return nil, fmt.Errorf("read item %d: %w", index, err)
	}
	return e.decode(text)
}

func (e entry) read() ([]byte, error) {
	if e.line == 0 {
		return os.ReadFile(e.path)
	}
	file, err := os.Open(e.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text := make([]byte, e.length)
	if _, err := file.ReadAt(text, e.offset); err != nil {
		return nil, &fs.PathError{Op: "read", Path: e.path, Err: err}
	}
	return text, nil
}

// decode makes an item of text: numbers without a fraction are integers.
func (e entry) decode(text []byte) (rl.Item, error) {
	if filepath.Ext(e.path) == ".txt" {
		return rl.Item{"name": filepath.Base(e.path), "prompt": string(text)}, nil
	}
	at := e.path
	if e.line > 0 {
		at = fmt.Sprintf("%s:%d", e.path, e.line)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var item rl.Item
	if err := decoder.Decode(&item); err != nil {
		return nil, fmt.Errorf("%s: %w: want a JSON object", at, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || item == nil {
		return nil, fmt.Errorf("%s: want one JSON object and nothing else", at)
	}
	for name, value := range item {
		item[name] = number(value)
	}
	return item, nil
}

func number(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return n
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = number(out[i])
		}
		return out
	case map[string]any:
		for name, inner := range v {
			v[name] = number(inner)
		}
	}
	return value
}
