package configuration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

// Evaluate expands a configuration. Where nothing is wrong but that variables
// have no value, and a terminal is attached, it asks for them; opts then has
// the answers, for evaluating again.
func Evaluate(ctx context.Context, a *terminal.Terminal, src *lang.Source, opts *eval.Options, flags Options) (*schema.Config, hcl.Diagnostics, error) {
	cfg, diags := src.Evaluate(*opts)
	unset, only := diagnose.UnsetVariables(diags)
	if !only || !flags.Input || !terminal.IsTerminal(a.Stdin) {
		return cfg, diags, nil
	}
	if err := workspaceIsThere(ctx, src, flags); err != nil {
		return nil, nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for _, v := range unset {
		given, err := askFor(ctx, a, src, *opts, v)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.Stderr)
			return cfg, diags, nil // no answer
		}
		if err != nil {
			fmt.Fprintln(a.Stderr)
			return nil, nil, terminal.Interrupted(ctx, err)
		}
		opts.Given = append(opts.Given, given)
	}
	cfg, diags = src.Evaluate(*opts)
	return cfg, diags, nil
}

// workspaceIsThere finds out before anything is asked whether the answers would
// be of use.
func workspaceIsThere(ctx context.Context, src *lang.Source, flags Options) error {
	settings, diags := src.Settings(flags.Local)
	if diags.HasErrors() {
		return nil // which is reported with the rest
	}
	at, err := stack.SiteOf(src.Dir(), settings, flags.Workspace)
	if err != nil || at.IsDefault() {
		return err
	}
	where, err := at.Location()
	if err != nil {
		return err
	}
	_, err = at.OpenWorkspace(ctx, where)
	return err
}

// askFor asks for the value of a variable until one fits.
func askFor(ctx context.Context, a *terminal.Terminal, src *lang.Source, opts eval.Options, v diagnose.Unset) (eval.Given, error) {
	fmt.Fprintf(a.Stderr, "var.%s\n", v.Name)
	for line := range strings.Lines(v.Description) {
		fmt.Fprintf(a.Stderr, "  %s\n", strings.TrimRight(line, "\n"))
	}
	kind := ""
	if v.Type != "string" && v.Type != "any" {
		kind = " (" + v.Type + ")"
	}
	earlier := slices.Clip(opts.Given)
	for {
		fmt.Fprintf(a.Stderr, "\n  Value%s: ", kind)
		text, err := a.ReadAnswer(ctx, v.Sensitive)
		if err != nil {
			return eval.Given{}, err
		}
		given := eval.Given{Kind: eval.GivenAnswer, Text: v.Name + "=" + text}
		opts.Given = append(earlier, given)
		why := src.CheckVariables(opts)
		switch {
		case strings.TrimSpace(text) == "":
			fmt.Fprintf(a.Stderr, "  A value is needed. An empty one can be given with --var '%s='.\n", v.Name)
		case len(why) > 0:
			for _, d := range why {
				fmt.Fprintf(a.Stderr, "  %s\n", d.Detail)
			}
		default:
			fmt.Fprintln(a.Stderr)
			return given, nil
		}
	}
}
