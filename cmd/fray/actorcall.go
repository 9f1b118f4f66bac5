package main

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

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/wire"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func actorCallCommand(a *app) *cobra.Command {
	var flags actorFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "call ACTOR METHOD [JSON]",
		Short: "Call a method of an actor",
		Long: `Call a method and print what it returns, as JSON. ACTOR is a name, the address of
the job that hosts it, or actor://HOST:PORT/NAME. The arguments are JSON: a list is
the positional ones, an object those by name, anything else a single one.

  fray actor call counter add '[2]'
  fray actor call actor_service.inference[1] predict '{"prompts": ["Hello"]}'

What JSON has no word for is written {"$bytes": BASE64}, {"$time": RFC 3339} or
{"$ndarray": {"dtype", "shape", "data"}}, and printed so.

The call runs once or not at all; where that cannot be known, the error says so.`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return errors.New("want ACTOR METHOD [JSON]; fray actor describe ACTOR shows the methods")
			case len(args) > 3:
				return errors.New("want ACTOR METHOD [JSON]; several arguments are one list in quotes, as in '[1, \"two\"]'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := actorArguments(slices.Concat(args, []string{"[]"})[2])
			if err != nil {
				return err
			}
			return a.withActor(cmd.Context(), flags, args[0], func(ctx context.Context, _ *actorrpc.Client, h actorrpc.Handle) error {
				err := a.callActor(ctx, h.With(actorrpc.RPCOptions{Timeout: timeout}), args[1], given)
				if e, ok := errors.AsType[*actorrpc.Error](err); ok && e.Code == actorrpc.CodeUnknownMethod && len(e.Near) == 0 {
					return fmt.Errorf("%w; fray actor describe %s lists its methods", err, args[0])
				}
				return err
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give the call up after this `TIME`, such as 30s; 0 waits for its end")
	return cmd
}

func actorDescribeCommand(a *app) *cobra.Command {
	var flags actorFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe ACTOR",
		Short: "The methods of an actor",
		Long: `Ask an actor for its methods: their arguments, whether running one twice does no
harm (idempotent), and what they say of themselves. ACTOR is as in fray actor call.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withActor(cmd.Context(), flags, args[0], func(ctx context.Context, client *actorrpc.Client, h actorrpc.Handle) error {
				methods, err := client.Methods(ctx, h)
				if err != nil {
					return fmt.Errorf("fray actor describe: %w", err)
				}
				return a.describeActor(methods, asJSON)
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}

// actorArguments reads the arguments of a call.
func actorArguments(text string) ([]any, error) {
	text = strings.TrimSpace(text)
	given, named := text, "{}"
	switch {
	case strings.HasPrefix(text, "["):
	case strings.HasPrefix(text, "{") && !strings.HasPrefix(strings.TrimSpace(text[1:]), `"$`):
		named, text = text, "[]"
	default:
		text = "[" + text + "]"
	}
	whole := "[" + text + "," + named + "]"
	if !json.Valid([]byte(whole)) {
		return nil, fmt.Errorf("fray actor call: the arguments are no JSON: %s; quote them for the shell, as in '[1, \"two\"]'", given)
	}
	args, err := codec.DecodeArgs(codec.JSON, []byte(whole), nil, 0)
	if err != nil {
		return nil, fmt.Errorf("fray actor call: %w", err)
	}
	if len(args.Named) > 0 {
		return append(args.Positional, actorrpc.Named(args.Named)), nil
	}
	return args.Positional, nil
}

func (a *app) callActor(ctx context.Context, h actorrpc.Handle, method string, args []any) error {
	result, err := actorrpc.Call[any](ctx, h, method, args...)
	if err != nil {
		if e, ok := errors.AsType[*actorrpc.Error](err); ok && e.Traceback != "" {
			fmt.Fprintln(a.stderr, strings.TrimRight(e.Traceback, "\n"))
		}
		return fmt.Errorf("fray actor call: %w%s", err, mayHaveRun(err))
	}
	data, _, err := codec.EncodeResult(codec.JSON, result)
	if err != nil {
		return fmt.Errorf("fray actor call: %w", err)
	}
	var value any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("fray actor call: %w", err)
	}
	return a.printJSON(value)
}

// mayHaveRun says so where the error itself does not.
func mayHaveRun(err error) string {
	e, ok := errors.AsType[*actorrpc.Error](err)
	if ok && e.Ran && (e.Code == actorrpc.CodeDeadline || e.Code == actorrpc.CodeCancelled) {
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
}

func (a *app) describeActor(methods []*wire.Method, asJSON bool) error {
	if asJSON {
		out := []methodJSON{}
		for _, m := range methods {
			out = append(out, methodJSON{m.GetName(), m.GetSignature(), m.GetParams(), m.GetDoc(), m.GetIdempotent(), m.GetConcurrencyGroup()})
		}
		return a.printJSON(out)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	for _, m := range methods {
		var notes []string
		if m.GetIdempotent() {
			notes = append(notes, "idempotent")
		}
		if m.GetConcurrencyGroup() != "" {
			notes = append(notes, "group "+m.GetConcurrencyGroup())
		}
		if m.GetDoc() != "" {
			notes = append(notes, m.GetDoc())
		}
		fmt.Fprintf(w, "%s\t%s\n", m.GetSignature(), strings.Join(notes, "; "))
	}
	return w.Flush()
}

// withActor finds an actor and does something with a handle of it.
func (a *app) withActor(ctx context.Context, flags actorFlags, text string, do func(context.Context, *actorrpc.Client, actorrpc.Handle) error) error {
	config := actorrpc.Config{ResolveTimeout: actorPatience}
	url := text
	name := ""
	if !isActorURL(text) || flags.namespace != "" {
		l, err := a.locate(ctx, []string{flags.dir}, flags.config)
		if err != nil {
			return err
		}
		namespace := flags.namespace
		if !isActorURL(text) {
			found, err := l.findActor(ctx, text, flags.namespace)
			if err != nil {
				return err
			}
			url, namespace = found.Address, found.Namespace
			name = found.Name
		}
		member, err := l.stack.member(ctx, l.doc)
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
	resolver, err := actorrpc.NewFixedResolver(url)
	if err != nil {
		return err
	}
	if name == "" {
		endpoint, err := actorrpc.ParseURL(url)
		if err != nil {
			return err
		}
		if name = endpoint.Name; name == "" {
			return fmt.Errorf("%s names no actor; want actor://%s/NAME", text, text)
		}
	}
	client := actorrpc.NewClient(resolver, config)
	defer func() { _ = client.Close() }()
	h, err := client.Lookup(ctx, name)
	if err != nil {
		return err
	}
	return do(ctx, client, h)
}

// actorPatience is how long a person waits for an actor that nobody answers for.
const actorPatience = 10 * time.Second

func isActorURL(text string) bool {
	if strings.Contains(text, "://") {
		return true
	}
	_, port, err := net.SplitHostPort(text)
	return err == nil && port != ""
}

// member makes this command one of any namespace, as who may write to the stack's store
// may do.
func (s *stack) member(ctx context.Context, doc *state.Document) (*clusterkeys.Member, error) {
	m, err := clusterkeys.Join(ctx, s.store, doc.Stack(), userAtHost(), s.clock.Now(ctx))
	if err != nil {
		return nil, fmt.Errorf("call actors: %w", err)
	}
	return m, nil
}

// findActor is the newest actor that is ready of a name, or of the job at an address.
func (l *loaded) findActor(ctx context.Context, text, namespace string) (controller.Actor, error) {
	all, err := l.actors(ctx, namespace, "")
	if err != nil {
		return controller.Actor{}, err
	}
	addr, addrErr := schema.ParseAddress(text)
	var found []controller.Actor
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
		return controller.Actor{}, fmt.Errorf("there is no actor %q: namespace %s has none; fray actor list shows those of all namespaces", text, namespace)
	case len(found) == 0 && len(all) == 0:
		return controller.Actor{}, fmt.Errorf("there is no actor %q: the stack has none; fray actor list shows them once jobs that host some were applied", text)
	case len(found) == 0:
		message := fmt.Sprintf("there is no actor %q; fray actor list shows those that there are", text)
		if near := schema.Nearest(text, names); near != "" {
			message = fmt.Sprintf("there is no actor %q; did you mean %q?", text, near)
		}
		return controller.Actor{}, errors.New(message)
	case len(spaces) > 1:
		return controller.Actor{}, fmt.Errorf("actor %q is in the namespaces %s; choose one with --namespace", text, strings.Join(spaces, ", "))
	}
	for _, c := range slices.Backward(found) {
		if c.Status == controller.ActorReady {
			return c, nil
		}
	}
	last := found[len(found)-1]
	message := fmt.Sprintf("actor %s is %s", last.Name, last.Status)
	if last.Reason != "" {
		message += ": " + last.Reason
	}
	return last, fmt.Errorf("%s; fray status %s says more", message, shellWord(last.Job.String()))
}
