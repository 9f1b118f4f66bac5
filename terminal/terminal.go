package terminal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/term"

	terminaldiag "github.com/fray-ml/fray/terminal/diag"
)

// Exit codes (docs/commands.md).
const (
	ExitOK          = 0
	ExitError       = 1
	ExitChanges     = 2   // plan --detailed-exitcode: there is something to do
	ExitPending     = 3   // apply --timeout: something still waits
	ExitInterrupted = 130 // Ctrl-C, as shells count it
)

// Terminal is what every verb needs of its surroundings.
//
// How fray talks: results go to stdout; questions, progress, warnings and
// errors to stderr. An error states what failed, why, and what to do, in that
// order. Nothing is printed twice. Colour only on a terminal, never with
// NO_COLOR or --no-color.
type Terminal struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	NoColor        bool
	PlainProgress  bool
	// Diagnosed gets the diagnostics that are printed; nil: they are only printed.
	Diagnosed func(files map[string]*hcl.File, diags hcl.Diagnostics)
	typed     *bufio.Reader // of stdin, once a line was asked for
}

// New returns a terminal of three streams.
func New(stdin io.Reader, stdout, stderr io.Writer) *Terminal {
	return &Terminal{Stdin: stdin, Stdout: stdout, Stderr: stderr}
}

// Exit is an error that sets the exit code; its message is printed unless empty.
type Exit struct {
	Code int
	Msg  string
}

func (e *Exit) Error() string { return e.Msg }

// ErrReported is an error whose diagnostics have been printed already.
var ErrReported = errors.New("diagnostics were printed")

// ExitCode prints an error that was not printed yet and returns the exit code of it.
func (a *Terminal) ExitCode(err error) int {
	var e *Exit
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrReported):
		if errors.As(err, &e) && e.Msg != "" { // besides
			a.Fail(e.Msg)
		}
		return ExitError
	case errors.As(err, &e):
		if e.Msg != "" {
			a.Fail(err.Error()) // with what it was joined to
		}
		return e.Code
	}
	a.Fail(err.Error())
	return ExitError
}

// Fail prints an error.
func (a *Terminal) Fail(msg string) {
	label := "Error:"
	if a.Color(a.Stderr) {
		label = "\x1b[1;31mError:\x1b[0m"
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", label, msg)
}

// Warn prints a warning.
func (a *Terminal) Warn(msg string) {
	label := "Warning:"
	if a.Color(a.Stderr) {
		label = "\x1b[1;33mWarning:\x1b[0m"
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", label, msg)
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Color reports whether a stream is to be coloured.
func (a *Terminal) Color(w io.Writer) bool {
	return !a.NoColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w)
}

// Width is the number of columns of a stream, 80 where there is no terminal.
func (a *Terminal) Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 20 {
			return cols
		}
	}
	return 80
}

// Height is the number of lines of a stream, 24 where there is no terminal.
func (a *Terminal) Height(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if _, rows, err := term.GetSize(int(f.Fd())); err == nil && rows > 0 {
			return rows
		}
	}
	return 24
}

// Diagnostics prints the diagnostics of the files and returns ErrReported
// if any of it is an error.
func (a *Terminal) Diagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) error {
	if len(diags) == 0 {
		return nil
	}
	if a.Diagnosed != nil {
		a.Diagnosed(files, diags)
	}
	text := &terminaldiag.Text{Files: files, Width: a.Width(a.Stderr), Color: a.Color(a.Stderr)}
	if err := text.Write(a.Stderr, diags); err != nil {
		return err
	}
	if diags.HasErrors() {
		return ErrReported
	}
	return nil
}

// PrintJSON prints a value as indented JSON.
func (a *Terminal) PrintJSON(v any) error {
	enc := json.NewEncoder(a.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
