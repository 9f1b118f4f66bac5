package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// ReadLine reads a line that the user types, until ctx ends.
func (a *Terminal) ReadLine(ctx context.Context) (string, error) {
	return answered(ctx, func() (string, error) {
		if a.typed == nil { // one for all questions: it may have read ahead
			a.typed = bufio.NewReader(a.Stdin)
		}
		return a.typed.ReadString('\n')
	})
}

// answered waits for a read until ctx ends. A read cannot be interrupted: it
// ends with the process.
func answered(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := read()
		answers <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-answers:
		return got.line, got.err
	}
}

// ReadAnswer reads a line without its end; a secret one is not shown.
func (a *Terminal) ReadAnswer(ctx context.Context, secret bool) (string, error) {
	terminal, ok := a.Stdin.(*os.File)
	if !secret || !ok {
		line, err := a.ReadLine(ctx)
		if err != nil {
			return "", err // a line without an end was not finished
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	fd := int(terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("ask without showing the answer: %w", err)
	}
	text, err := answered(ctx, func() (string, error) {
		typed, err := term.ReadPassword(fd)
		return string(typed), err
	})
	if ctx.Err() != nil { // the read goes on, and shows nothing
		return "", errors.Join(err, term.Restore(fd, before))
	}
	if err == nil {
		fmt.Fprintln(a.Stderr)
	}
	return text, err
}
