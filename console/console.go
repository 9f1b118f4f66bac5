package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/show"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

// Console evaluates what is typed.
type Console struct {
	Terminal *terminal.Terminal
	scope    *eval.Scope
	files    map[string]*hcl.File
	input    string // the lines of an expression that goes on
	failed   bool
}

// Open evaluates the configuration with what the state knows.
func (c *Console) Open(ctx context.Context, paths []string, flags configuration.Options) error {
	src, diags := configuration.Parse(paths)
	c.files = src.Files()
	switch {
	case nothingWritten(paths):
		c.scope = src.Bare()
		return nil
	case diags.HasErrors():
		c.scope = src.Bare()
		return c.report(diags, "Functions can be used; names of the configuration cannot, because of these errors.")
	}
	settings, more := src.Settings(flags.Local)
	where, err := stack.SiteOf(src.Dir(), settings, flags.Workspace)
	if err != nil {
		return err
	}
	opts := flags.InWorkspace(where.Workspace)
	opts.Data = configuration.NewReader(ctx, src, where, flags.Local)
	if !more.HasErrors() {
		st, err := stack.Open(ctx, where, false)
		if err != nil {
			return err
		}
		doc, err := st.Load(ctx)
		if err != nil {
			return err
		}
		opts.Computed = doc.Computed()
	}
	if _, _, err := configuration.Evaluate(ctx, c.Terminal, src, &opts, flags); err != nil { // asks for variables
		return err
	}
	c.scope, more = src.Scope(opts)
	c.files = src.Files()
	return c.report(append(diags, more...), "Because of these errors some names have no value.")
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

// report prints the errors of the files, if there are any, and what follows.
func (c *Console) report(diags hcl.Diagnostics, then string) error {
	if err := c.Terminal.Diagnostics(c.files, terminal.ErrorsOf(diags)); err != nil {
		c.failed = true
		c.Terminal.Warn(then)
	}
	return nil
}

// Read evaluates the lines of a pipe.
func (c *Console) Read(in io.Reader) error {
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
		return terminal.ErrReported
	}
	return nil
}

// end evaluates what the input ends with, although it may go on.
func (c *Console) end() {
	if c.input != "" {
		c.evaluate(c.input)
		c.input = ""
	}
}

// line takes one more line and reports whether it was the last.
func (c *Console) line(text string) bool {
	if c.input == "" {
		command := strings.TrimSpace(text)
		if command == "" || strings.HasPrefix(command, "#") || strings.HasPrefix(command, "//") {
			return false
		}
		switch command {
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
func (c *Console) evaluate(src string) {
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
	if err := c.Terminal.Diagnostics(files, diags); err != nil {
		c.failed = true
		return
	}
	if wantType {
		c.print(show.Type(val))
		return
	}
	c.print(show.Value(val))
}

func (c *Console) print(text string) { fmt.Fprintln(c.Terminal.Stdout, text) }
