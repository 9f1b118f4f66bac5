package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// JSONL appends each record as a line of JSON to a file.
type JSONL struct {
	mu    sync.Mutex
	file  *os.File
	known []string
	step  int64
}

// NewJSONL opens metrics.jsonl in a directory, which it makes. Records are appended to those that are there; the part of a
// line that a crash left is ended.
func NewJSONL(dir string) (*JSONL, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "metrics.jsonl"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	j := &JSONL{file: file}
	err = j.read()
	if err == nil {
		err = endLine(file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), file.Close())
	}
	return j, nil
}

// Known are the IDs of the last records that were there before, since the run went back last, in their order: their posts may come
// again, as answers are lost with a process.
func (j *JSONL) Known() []string { return j.known }

// Step is the last step of these records.
func (j *JSONL) Step() int64 { return j.step }

// knownBytes is how much of the end of a file is read for Known.
const knownBytes = 4 << 20

// read finds what is known of the records that are there.
func (j *JSONL) read() error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	begin := max(0, info.Size()-knownBytes)
	text := make([]byte, info.Size()-begin)
	if _, err := j.file.ReadAt(text, begin); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for line := range bytes.Lines(text) {
		var record struct {
			ID   string
			Step int64
			Back bool
		}
		if json.Unmarshal(line, &record) != nil { // the part of a line
			continue
		}
		if record.Back {
			j.known, j.step = nil, 0
		}
		if record.ID != "" {
			j.known = append(j.known, record.ID)
		}
		j.step = max(j.step, record.Step)
	}
	return nil
}

// endLine makes the next write begin a line.
func endLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = file.WriteString("\n")
	return err
}

// Log writes {"time", "step", "data", "title", "content", "id", "back"}; numbers that JSON does not have are texts, "NaN".
func (j *JSONL) Log(r Record) error {
	data := make(map[string]any, len(r.Data))
	for name, value := range r.Data {
		data[name] = finite(value)
	}
	line, err := json.Marshal(struct {
		Time    time.Time      `json:"time"`
		Step    int64          `json:"step"`
		Data    map[string]any `json:"data,omitempty"`
		Title   string         `json:"title,omitempty"`
		Content string         `json:"content,omitempty"`
		ID      string         `json:"id,omitempty"`
		Back    bool           `json:"back,omitempty"`
	}{r.Time.UTC(), r.Step, data, r.Title, r.Content, r.ID, r.Back})
	if err != nil {
		return fmt.Errorf("metrics of step %d: %w", r.Step, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("metrics of step %d: %w", r.Step, err)
	}
	return nil
}

// finite is a value that JSON has: numbers that it does not have are texts, also within lists and objects.
func finite(value any) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = finite(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			object[name] = finite(item)
		}
		return object
	}
	if n, ok := Number(value); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return value
}

// Close closes the file.
func (j *JSONL) Close() error { return j.file.Close() }
