package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/term"

	"github.com/fray-ml/fray/schema"
)

// evaluate expands a configuration. Where nothing is wrong but that variables
// have no value, and somebody is there to ask, it asks for them; opts then has
// the answers, for evaluating again.
func (a *app) evaluate(ctx context.Context, src *schema.Source, opts *schema.Options, flags configFlags) (*schema.Config, hcl.Diagnostics, error) {
	cfg, diags := src.Evaluate(*opts)
	unset, only := schema.UnsetVariables(diags)
	if !only || !flags.input || !isTerminal(a.stdin) {
		return cfg, diags, nil
	}
	if err := workspaceIsThere(ctx, src, flags); err != nil {
		return nil, nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for _, v := range unset {
		given, err := a.askFor(ctx, src, *opts, v)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.stderr)
			return cfg, diags, nil // nobody answers
		}
		if err != nil {
			fmt.Fprintln(a.stderr)
			return nil, nil, untouched(ctx, err)
		}
		opts.Given = append(opts.Given, given)
	}
	cfg, diags = src.Evaluate(*opts)
	return cfg, diags, nil
}

// workspaceIsThere finds out before anything is asked whether the answers would
// be of use.
func workspaceIsThere(ctx context.Context, src *schema.Source, flags configFlags) error {
	settings, diags := src.Settings(flags.local)
	if diags.HasErrors() {
		return nil // which is told with the rest
	}
	at, err := siteOf(src.Dir(), settings, flags.workspace)
	if err != nil || at.isDefault() {
		return err
	}
	where, err := at.location()
	if err != nil {
		return err
	}
	_, err = at.openWorkspace(ctx, where)
	return err
}

// askFor asks for the value of a variable until one fits.
func (a *app) askFor(ctx context.Context, src *schema.Source, opts schema.Options, v schema.Unset) (schema.Given, error) {
	fmt.Fprintf(a.stderr, "var.%s\n", v.Name)
	for line := range strings.Lines(v.Description) {
		fmt.Fprintf(a.stderr, "  %s\n", strings.TrimRight(line, "\n"))
	}
	kind := ""
	if v.Type != "string" && v.Type != "any" {
		kind = " (" + v.Type + ")"
	}
	earlier := slices.Clip(opts.Given)
	for {
		fmt.Fprintf(a.stderr, "\n  Value%s: ", kind)
		text, err := a.readAnswer(ctx, v.Sensitive)
		if err != nil {
			return schema.Given{}, err
		}
		given := schema.Given{Kind: schema.GivenAnswer, Text: v.Name + "=" + text}
		opts.Given = append(earlier, given)
		why := src.CheckVariables(opts)
		switch {
		case strings.TrimSpace(text) == "":
			fmt.Fprintf(a.stderr, "  A value is needed. An empty one can be given with --var '%s='.\n", v.Name)
		case len(why) > 0:
			for _, d := range why {
				fmt.Fprintf(a.stderr, "  %s\n", d.Detail)
			}
		default:
			fmt.Fprintln(a.stderr)
			return given, nil
		}
	}
}

// readAnswer reads a line without its end; a secret one is not shown.
func (a *app) readAnswer(ctx context.Context, secret bool) (string, error) {
	terminal, ok := a.stdin.(*os.File)
	if !secret || !ok {
		line, err := a.readLine(ctx)
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
		fmt.Fprintln(a.stderr)
	}
	return text, err
}
