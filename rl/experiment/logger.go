package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Record is what is logged at once.
type Record struct {
	Time time.Time
	Step int64
	Data map[string]any // metrics; those that are numbers have curves
	// Title and Content are a message to people; "": none.
	Title, Content string
	ID             string // of the record, as its sender names it; "": it does not
}

// Logger takes records. It may be used by many goroutines at once.
type Logger interface {
	Log(r Record) error
	Close() error
}

var (
	_ Logger = (*Console)(nil)
	_ Logger = (*JSONL)(nil)
	_ Logger = (*Tensorboard)(nil)
)

// Number is a metric as a number. Booleans, texts and lists are none.
func Number(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case float32:
		return float64(v), true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

// Console prints a line for each record.
type Console struct {
	mu  sync.Mutex
	out io.Writer
}

// NewConsole prints to a writer.
func NewConsole(out io.Writer) *Console { return &Console{out: out} }

// Log prints "step 10  critic/kl 0.01  reward 0.5": metrics by name, numbers with four digits.
func (c *Console) Log(r Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "step %d", r.Step)
	for _, name := range slices.Sorted(maps.Keys(r.Data)) {
		text := fmt.Sprint(r.Data[name])
		if n, ok := Number(r.Data[name]); ok {
			text = strconv.FormatFloat(n, 'g', 4, 64)
		}
		fmt.Fprintf(&line, "  %s %s", name, text)
	}
	for _, text := range []string{r.Title, r.Content} {
		if text != "" {
			line.WriteString("  " + text)
		}
	}
	line.WriteByte('\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.out, line.String()); err != nil {
		return fmt.Errorf("print metrics: %w", err)
	}
	return nil
}

// Close does nothing: the writer is the caller's.
func (c *Console) Close() error { return nil }

// JSONL appends each record as a line of JSON to a file.
type JSONL struct {
	mu   sync.Mutex
	file *os.File
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
	if err := endLine(file); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), file.Close())
	}
	return &JSONL{file: file}, nil
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

// Log writes {"time", "step", "data", "title", "content", "id"}; numbers that JSON does not have are texts, "NaN".
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
	}{r.Time.UTC(), r.Step, data, r.Title, r.Content, r.ID})
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
