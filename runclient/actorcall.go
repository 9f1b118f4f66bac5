package runclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/terminal"
)

// CallActor calls a method of an actor and prints its result as JSON, of one that streams each item in a line.
func CallActor(ctx context.Context, a *terminal.Terminal, h actorrpc.Handle, method string, args []any) error {
	for result, err := range actorrpc.Results(ctx, h, method, args...) {
		if err != nil {
			if e, ok := errors.AsType[*rpcerror.Error](err); ok && e.Traceback != "" {
				fmt.Fprintln(a.Stderr, strings.TrimRight(e.Traceback, "\n"))
			}
			return fmt.Errorf("fray actor call: %w%s", err, mayHaveRun(err))
		}
		if err := printResult(a, result); err != nil {
			return fmt.Errorf("fray actor call: %w", err)
		}
	}
	return nil
}

func printResult(a *terminal.Terminal, result actorrpc.Result) error {
	data, _, err := codec.EncodeResult(codec.JSON, result.Value)
	if err != nil {
		return err
	}
	if result.Item {
		_, err := fmt.Fprintf(a.Stdout, "%s\n", data)
		return err
	}
	var value any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return err
	}
	return a.PrintJSON(value)
}

// mayHaveRun says so where the error itself does not.
func mayHaveRun(err error) string {
	e, ok := errors.AsType[*rpcerror.Error](err)
	if ok && e.Ran && (e.Code == rpcerror.CodeDeadline || e.Code == rpcerror.CodeCancelled) {
		return "; the call was sent before: it may have run, or run still"
	}
	return ""
}

// methodJSON is a method as describe --json prints it.
type methodJSON struct {
	Name             string   `json:"name"`
	Signature        string   `json:"signature"`
	Params           []string `json:"params,omitempty"`
	Doc              string   `json:"doc,omitempty"`
	Idempotent       bool     `json:"idempotent,omitempty"`
	ConcurrencyGroup string   `json:"concurrency_group,omitempty"`
	Retries          uint32   `json:"retries,omitempty"`
	RetryExceptions  []string `json:"retry_exceptions,omitempty"`
	Streams          bool     `json:"streams,omitempty"`
}

// DescribeActor prints the methods of an actor.
func DescribeActor(a *terminal.Terminal, methods []*wire.Method, asJSON bool) error {
	if asJSON {
		out := []methodJSON{}
		for _, m := range methods {
			out = append(out, methodJSON{
				m.GetName(), m.GetSignature(), m.GetParams(), m.GetDoc(), m.GetIdempotent(), m.GetConcurrencyGroup(), m.GetRetries(), m.GetRetryExceptions(), m.GetStreams(),
			})
		}
		return a.PrintJSON(out)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
	for _, m := range methods {
		var notes []string
		if m.GetIdempotent() {
			notes = append(notes, "idempotent")
		}
		if m.GetStreams() {
			notes = append(notes, "streams")
		}
		if m.GetConcurrencyGroup() != "" {
			notes = append(notes, "group "+m.GetConcurrencyGroup())
		}
		if n := m.GetRetries(); n > 0 {
			notes = append(notes, fmt.Sprintf("retries %d", n))
		}
		if names := m.GetRetryExceptions(); len(names) > 0 {
			notes = append(notes, "retried after "+strings.Join(names, ", "))
		}
		if m.GetDoc() != "" {
			notes = append(notes, m.GetDoc())
		}
		fmt.Fprintf(w, "%s\t%s\n", m.GetSignature(), strings.Join(notes, "; "))
	}
	return w.Flush()
}

// WithActor finds an actor and does something with a handle of it.
func WithActor(ctx context.Context, a *terminal.Terminal, flags ActorOptions, text string, do func(context.Context, *actorrpc.Client, actorrpc.Handle) error) error {
	config := actorrpc.Config{ResolveTimeout: actorPatience}
	url := text
	name := ""
	if !isActorURL(text) || flags.Namespace != "" {
		l, err := configuration.Locate(ctx, a, []string{flags.Dir}, flags.Configuration)
		if err != nil {
			return err
		}
		namespace := flags.Namespace
		if !isActorURL(text) {
			found, err := findActor(ctx, l, text, flags.Namespace)
			if err != nil {
				return err
			}
			url, namespace = found.Address, found.Namespace
			name = found.Name
		}
		member, err := l.Stack.Member(ctx, l.Document)
		if err != nil {
			return err
		}
		pem, err := member.File(ctx, namespace)
		if err != nil {
			return err
		}
		if config.Identity, err = actorrpc.ParseIdentity(pem); err != nil {
			return err
		}
		config.Namespace = namespace
	}
	names, err := resolver.NewFixed(url)
	if err != nil {
		return err
	}
	if name == "" {
		endpoint, err := resolver.ParseURL(url)
		if err != nil {
			return err
		}
		if name = endpoint.Name; name == "" {
			return fmt.Errorf("%s names no actor; want actor://%s/NAME", text, text)
		}
	}
	client := actorrpc.NewClient(names, config)
	defer func() { _ = client.Close() }()
	h, err := client.Lookup(ctx, name)
	if err != nil {
		return err
	}
	return do(ctx, client, h)
}

// actorPatience is how long a command waits for an actor that does not answer.
const actorPatience = 10 * time.Second

func isActorURL(text string) bool {
	if strings.Contains(text, "://") {
		return true
	}
	_, port, err := net.SplitHostPort(text)
	return err == nil && port != ""
}

// findActor is the newest actor that is ready of a name, or of the job at an address.
func findActor(ctx context.Context, l *configuration.Loaded, text, namespace string) (actors.Actor, error) {
	all, err := ListActors(ctx, l, namespace, "")
	if err != nil {
		return actors.Actor{}, err
	}
	addr, addrErr := schema.ParseAddress(text)
	var found []actors.Actor
	var names, spaces []string
	for i := range all {
		names = append(names, all[i].Name)
		if all[i].Name == text || addrErr == nil && addr.Contains(all[i].Job) {
			found = append(found, all[i])
			if !slices.Contains(spaces, all[i].Namespace) {
				spaces = append(spaces, all[i].Namespace)
			}
		}
	}
	switch {
	case len(found) == 0 && len(all) == 0 && namespace != "":
		return actors.Actor{}, fmt.Errorf("there is no actor %q: namespace %s has none; fray actor list shows those of all namespaces", text, namespace)
	case len(found) == 0 && len(all) == 0:
		return actors.Actor{}, fmt.Errorf("there is no actor %q: the stack has none; fray actor list shows them once jobs that host some were applied", text)
	case len(found) == 0:
		message := fmt.Sprintf("there is no actor %q; fray actor list shows those that there are", text)
		if near := schema.Nearest(text, names); near != "" {
			message = fmt.Sprintf("there is no actor %q; did you mean %q?", text, near)
		}
		return actors.Actor{}, errors.New(message)
	case len(spaces) > 1:
		return actors.Actor{}, fmt.Errorf("actor %q is in the namespaces %s; choose one with --namespace", text, strings.Join(spaces, ", "))
	}
	for _, c := range slices.Backward(found) {
		if c.Status == actors.Ready {
			return c, nil
		}
	}
	last := found[len(found)-1]
	message := fmt.Sprintf("actor %s is %s", last.Name, last.Status)
	if last.Reason != "" {
		message += ": " + last.Reason
	}
	return last, fmt.Errorf("%s; see fray status %s", message, terminal.ShellQuote(last.Job.String()))
}
