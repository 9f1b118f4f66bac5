package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/fray-ml/fray/terminal"
)

// Converse reads lines from a terminal, with history and completion. What was
// typed may be secret, so that it is kept nowhere.
func (c *Console) Converse(in *os.File) error {
	keys := &keyboard{in: in}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, c.screen(in)}, "> ")
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		line, pos, choices := c.complete(line, pos)
		if len(choices) > 0 {
			_, _ = fmt.Fprintln(t, strings.Join(choices, "  "))
		}
		return line, pos, true
	}
	for {
		t.SetPrompt("> ")
		if c.input != "" {
			t.SetPrompt("  ")
		}
		line, err := typed(t, in)
		switch {
		case keys.dropped:
			keys.dropped, c.input = false, ""
			continue
		case errors.Is(err, io.EOF):
			_, _ = fmt.Fprintln(c.screen(in))
			return nil
		case err != nil && !errors.Is(err, term.ErrPasteIndicator):
			return fmt.Errorf("read standard input: %w", err)
		}
		if c.line(line) {
			return nil
		}
	}
}

// screen is where what is typed shows: results may go to a file.
func (c *Console) screen(in *os.File) io.Writer {
	switch {
	case terminal.IsTerminal(c.Terminal.Stdout):
		return c.Terminal.Stdout
	case terminal.IsTerminal(c.Terminal.Stderr):
		return c.Terminal.Stderr
	}
	return in
}

// typed reads a line while the terminal leaves all keys to t; in between it is
// as it was, so that Ctrl-C ends an evaluation.
func typed(t *term.Terminal, in *os.File) (string, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", fmt.Errorf("set the terminal up: %w", err)
	}
	if width, height, err := term.GetSize(int(in.Fd())); err == nil && width > 0 {
		_ = t.SetSize(width, height)
	}
	line, err := t.ReadLine()
	return line, errors.Join(err, term.Restore(int(in.Fd()), before))
}

// keyboard makes of Ctrl-C, at which a [term.Terminal] ends, the keys that
// empty the line and end it.
type keyboard struct {
	in      io.Reader
	dropped bool
	pending []byte
}

const (
	ctrlC = 3
	ctrlE = 5  // to the end of the line
	ctrlU = 21 // delete what is before
)

func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.pending) == 0 {
		buffer := make([]byte, len(p))
		n, err := k.in.Read(buffer)
		if err != nil {
			return 0, err
		}
		k.pending = buffer[:n]
	}
	keys := k.pending
	if keys[0] == ctrlC { // what came before it has been read
		k.dropped = true
		k.pending = keys[1:]
		return copy(p, []byte{ctrlE, ctrlU, '\r'}), nil
	}
	if i := bytes.IndexByte(keys, ctrlC); i > 0 {
		keys = keys[:i]
	}
	n := copy(p, keys)
	k.pending = k.pending[n:]
	return n, nil
}

// maxChoices bounds how many completions are listed.
const maxChoices = 60

// complete completes the name before pos; where it can be several, as far as
// they agree, and if they do not, they are returned.
func (c *Console) complete(line string, pos int) (string, int, []string) {
	begin := strings.LastIndexFunc(line[:pos], func(r rune) bool { return !partOfName(r) }) + 1
	prefix := line[begin:pos]
	names := c.scope.Names(prefix)
	if len(names) == 0 {
		return line, pos, nil
	}
	common := names[0]
	for _, name := range names[1:] {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	var choices []string
	if common == prefix {
		choices = names[:min(len(names), maxChoices)]
		if more := len(names) - maxChoices; more > 0 {
			choices = append(choices, fmt.Sprintf("and %d more", more))
		}
	}
	return line[:begin] + common + line[pos:], begin + len(common), choices
}

func partOfName(r rune) bool {
	return r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
