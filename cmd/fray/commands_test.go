package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/terminal"
)

// docs/commands.md says what the commands say of themselves; -update rewrites it.
func TestCommandsDoc(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	got := commandsDoc(newRoot(terminal.New(nil, &bytes.Buffer{}, &bytes.Buffer{})))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the commands say; run the test with -update and read the diff", path)
	}
}

func commandsDoc(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprint(&b, `# Commands

Results go to standard output; questions, progress, warnings and errors to standard error.

| exit code | means |
|---|---|
| 0 | done; with `+"`plan --detailed-exitcode`"+`, also that there is nothing to do |
| 1 | an error, or a job that failed |
| 2 | `+"`plan --detailed-exitcode`"+`: there is something to do; `+"`fmt`"+`: a file could not be formatted |
| 3 | `+"`apply --timeout`"+`: something still waits, or, of what the plan did not name, something broke meanwhile; `+"`fmt --check`"+`: something would change |
| 130 | interrupted by Ctrl-C or SIGTERM |

Colours are used on a terminal only, and never with `+"`NO_COLOR`, `TERM=dumb` or `--no-color`"+`.
`)
	document(&b, root)
	return b.String()
}

func document(b *strings.Builder, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Runnable() && !c.HasSubCommands() {
			fmt.Fprintf(b, "\n## %s\n\n", c.UseLine())
			text := c.Long
			if text == "" {
				text = c.Short + "."
			}
			fmt.Fprintln(b, text)
			if flags := c.LocalFlags().FlagUsagesWrapped(110); strings.TrimSpace(flags) != "" {
				fmt.Fprintf(b, "\n%s", indentBlock(flags))
			}
		}
		document(b, c)
	}
}

// indentBlock makes a Markdown code block by indentation.
func indentBlock(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + line)
	}
	return b.String()
}
