package experiment

import (
	"fmt"
	"io"
	"maps"
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
	ID             string // by which the record is known when it comes again; "": none
	// Back is that the run has gone back to Step: what was logged of later steps is replaced by what follows.
	Back bool
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
	back := ""
	if r.Back {
		back = "the run goes back to this step"
	}
	for _, text := range []string{back, r.Title, r.Content} {
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
