package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/schema"
)

func consoleCommand(a *app) *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "console [DIR | FILE...]",
		Short: "Try expressions over the configuration and the state",
		Long: `Evaluate expressions, one on a line, with the values of the configuration and
what the state knows: variables, locals, modules, data, outputs, jobs, functions.
An expression goes on over several lines while brackets are open. :type EXPR, or
type(EXPR), is the type of an expression; :help says more; exit or Ctrl-D leaves.

From a pipe, the results are lines of standard output; console goes on after an
error, and exits with 1 at the end if there was one. Sensitive values are not
shown. console takes no lease and writes nothing. If the files have errors, it
prints them and knows what has a value in spite of them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := &console{app: a}
			if err := c.open(cmd.Context(), args, flags); err != nil {
				return err
			}
			if terminal, ok := a.stdin.(*os.File); ok && isTerminal(terminal) {
				return c.converse(terminal)
			}
			return c.read(a.stdin)
		},
	}
	flags.register(cmd)
	return cmd
}

// console evaluates what is typed.
type console struct {
	app    *app
	scope  *schema.Scope
	files  map[string]*hcl.File
	input  string // the lines of an expression that goes on
	failed bool
}

// open evaluates the configuration with what the state knows.
func (c *console) open(ctx context.Context, paths []string, flags configFlags) error {
	src, diags := parse(paths)
	c.files = src.Files()
	switch {
	case nothingWritten(paths):
		c.scope = src.Bare()
		return nil
	case diags.HasErrors():
		c.scope = src.Bare()
		return c.tell(diags, "Functions can be used; names of the configuration cannot, because of these errors.")
	}
	settings, more := src.Settings(flags.local)
	where, err := siteOf(src.Dir(), settings, flags.workspace)
	if err != nil {
		return err
	}
	opts := flags.options(where.workspace)
	opts.Data = data(ctx, src, where, flags.local)
	if !more.HasErrors() {
		st, err := openStack(ctx, where, false)
		if err != nil {
			return err
		}
		doc, err := st.load(ctx)
		if err != nil {
			return err
		}
		opts.Computed = doc.Computed()
	}
	if _, _, err := c.app.evaluate(ctx, src, &opts, flags); err != nil { // asks for variables
		return err
	}
	c.scope, more = src.Scope(opts)
	c.files = src.Files()
	return c.tell(append(diags, more...), "Because of these errors some names have no value.")
}

// nothingWritten reports whether there is no configuration at all: functions
// can be tried anywhere.
func nothingWritten(paths []string) bool {
	dir := "."
	if len(paths) > 0 {
		dir = paths[0]
	}
	if info, err := os.Stat(dir); len(paths) > 1 || err != nil || !info.IsDir() {
		return false
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.hcl"))
	return err == nil && len(names) == 0
}

// tell prints the errors of the files, if there are any, and what follows.
func (c *console) tell(diags hcl.Diagnostics, then string) error {
	if err := c.app.diagnostics(c.files, errorsOf(diags)); err != nil {
		c.failed = true
		c.app.warn(then)
	}
	return nil
}

// errorsOf leaves out warnings, which fray validate and fray plan are for.
func errorsOf(diags hcl.Diagnostics) hcl.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d *hcl.Diagnostic) bool { return d.Severity != hcl.DiagError })
}

// read evaluates the lines of a pipe.
func (c *console) read(in io.Reader) error {
	if in == nil {
		in = strings.NewReader("")
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" && c.line(strings.TrimRight(line, "\r\n")) {
			break
		}
		if err == io.EOF {
			c.end()
			break
		}
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
	}
	if c.failed {
		return errReported
	}
	return nil
}

// end evaluates what the input ends with, although it may go on.
func (c *console) end() {
	if c.input != "" {
		c.evaluate(c.input)
		c.input = ""
	}
}

// line takes one more line and reports whether it was the last.
func (c *console) line(text string) bool {
	if c.input == "" {
		word := strings.TrimSpace(text)
		if word == "" || strings.HasPrefix(word, "#") || strings.HasPrefix(word, "//") {
			return false
		}
		switch word {
		case "exit", "quit", ":exit", ":quit":
			return true
		case "help", ":help":
			c.print(consoleHelp)
			return false
		}
	}
	c.input += text + "\n"
	if goesOn(c.input) {
		return false
	}
	c.evaluate(c.input)
	c.input = ""
	return false
}

const consoleHelp = `Type an expression, such as var.NAME, length(job.NAME) or { for k, v in local.m : v => k },
to see what it comes to.

  :type EXPR    the type of an expression
  :help         this text
  exit          leave, as Ctrl-D does

Names: var, local, path, data, module, output, fray.workspace, and what is declared: job, job_group,
actor_service, reservation, namespace. On a terminal, Tab completes them, and Ctrl-C drops what was typed.`

// goesOn reports whether brackets or a heredoc are open.
func goesOn(src string) bool {
	tokens, _ := hclsyntax.LexExpression([]byte(src), consoleInput, hcl.InitialPos)
	open := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			open--
		}
	}
	return open > 0
}

// consoleInput names what was typed in diagnostics.
const consoleInput = "<console-input>"

// evaluate prints what an expression comes to.
func (c *console) evaluate(src string) {
	src, wantType := strings.CutPrefix(strings.TrimLeft(src, " \t"), ":type ")
	files := maps.Clone(c.files)
	if files == nil {
		files = map[string]*hcl.File{}
	}
	files[consoleInput] = &hcl.File{Bytes: []byte(src)}
	expr, diags := c.scope.Parse(src, consoleInput)
	var val cty.Value
	if !diags.HasErrors() {
		if call, ok := expr.(*hclsyntax.FunctionCallExpr); ok && call.Name == "type" && len(call.Args) == 1 {
			expr, wantType = call.Args[0], true
		}
		val, diags = c.scope.Eval(expr)
	}
	if err := c.app.diagnostics(files, diags); err != nil {
		c.failed = true
		return
	}
	if wantType {
		c.print(schema.ShowTypeOf(val))
		return
	}
	c.print(schema.Show(val))
}

func (c *console) print(text string) { fmt.Fprintln(c.app.stdout, text) }
