package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fray-ml/fray/cmd/fray/diag"
	"github.com/fray-ml/fray/schema"
)

// Exit codes (docs/commands.md).
const (
	exitOK          = 0
	exitError       = 1
	exitChanges     = 2   // plan --detailed-exitcode: there is something to do
	exitPending     = 3   // apply --timeout: something still waits
	exitInterrupted = 130 // Ctrl-C, as shells count it
)

// app is what every verb needs of its surroundings.
//
// How fray talks: results go to stdout; questions, progress, warnings and
// errors to stderr. An error says what failed, why, and what to do, in that
// order. Nothing is printed twice. Colour only on a terminal, never with
// NO_COLOR or --no-color.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	noColor        bool
	plainProgress  bool
	typed          *bufio.Reader // of stdin, once a line was asked for
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr}
}

// exit is an error that sets the exit code; its message is printed unless empty.
type exit struct {
	code int
	msg  string
}

func (e *exit) Error() string { return e.msg }

// reported is an error whose diagnostics have been printed already.
var errReported = errors.New("diagnostics were printed")

func (a *app) exitCode(err error) int {
	var e *exit
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		if errors.As(err, &e) && e.msg != "" { // besides
			a.fail(e.msg)
		}
		return exitError
	case errors.As(err, &e):
		if e.msg != "" {
			a.fail(err.Error()) // with what it was joined to
		}
		return e.code
	}
	a.fail(err.Error())
	return exitError
}

func (a *app) fail(msg string) {
	label := "Error:"
	if a.color(a.stderr) {
		label = "\x1b[1;31mError:\x1b[0m"
	}
	fmt.Fprintf(a.stderr, "%s %s\n", label, msg)
}

func (a *app) warn(msg string) {
	label := "Warning:"
	if a.color(a.stderr) {
		label = "\x1b[1;33mWarning:\x1b[0m"
	}
	fmt.Fprintf(a.stderr, "%s %s\n", label, msg)
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// color reports whether a stream is to be coloured.
func (a *app) color(w io.Writer) bool {
	return !a.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// width is the number of columns of a stream, 80 where there is no terminal.
func (a *app) width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 20 {
			return cols
		}
	}
	return 80
}

// diagnostics prints what is to be said about the files and returns errReported
// if any of it is an error.
func (a *app) diagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) error {
	if len(diags) == 0 {
		return nil
	}
	text := &diag.Text{Files: files, Width: a.width(a.stderr), Color: a.color(a.stderr)}
	if err := text.Write(a.stderr, diags); err != nil {
		return err
	}
	if diags.HasErrors() {
		return errReported
	}
	return nil
}

const longHelp = `fray runs machine-learning workloads that one HCL file describes: it plans what
will change, applies it to this machine or to TPU slices on Google Cloud, and keeps it
true while hosts come and go.

First steps:

  fray init            write a first fray.hcl to start from
  fray plan            show what would be done
  fray apply           do it
  fray status          see what runs, and why something does not
  fray logs -f ADDR    follow what a job prints
  fray watch           repair whatever breaks, until stopped
  fray destroy         take everything down again

ADDR is an address such as job.train, job.shard[3] or job_group.rl.job.rollout.`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "fray",
		Short:         "Declare, plan, apply and keep machine-learning workloads",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       toolVersion(),
	}
	root.SetVersionTemplate("fray {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.noColor, "no-color", false, "print without colours (also: NO_COLOR)")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "main", Title: "Main commands:"},
		&cobra.Group{ID: "look", Title: "Looking:"},
		&cobra.Group{ID: "other", Title: "Other commands:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("main", initCommand(a), validateCommand(a), testCommand(a), getCommand(a), planCommand(a), applyCommand(a), watchCommand(a), destroyCommand(a))
	add("look", statusCommand(a), logsCommand(a), execCommand(a), outputCommand(a), consoleCommand(a), showCommand(a), graphCommand(a), stateCommand(a), rehearseCommand(a))
	add("other", emulateCommand(a), workspaceCommand(a), stopCommand(a), pauseCommand(a), resumeCommand(a), eventsCommand(a), runCommand(a), actorCommand(a), fmtCommand(a), moduleCommand(a), importCommand(a), schemaCommand(a), versionCommand(a))
	root.AddCommand(agentCommand(a), shimCommand(a))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	root.InitDefaultCompletionCmd()
	refuseUnknown(root)
	return root
}

// refuseUnknown makes unknown subcommands errors, at every level, and a command
// that is nothing but its subcommands print its help.
func refuseUnknown(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		refuseUnknown(c)
	}
	if cmd.Runnable() || !cmd.HasSubCommands() {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		hint := "; " + cmd.CommandPath() + " --help lists what there is"
		if near := schema.Nearest(args[0], names); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return fmt.Errorf("%s has no command %q%s", cmd.CommandPath(), args[0], hint)
	}
}
