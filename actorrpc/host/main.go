package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Factory makes an actor of the arguments that its block has, a JSON object.
type Factory func(ctx context.Context, args json.RawMessage) (any, Options, error)

// Status is how a program that hosts an actor exits.
type Status int

// The statuses.
const (
	StatusOK          Status = 0
	StatusFailed      Status = 1  // it could not serve
	StatusConstructor Status = 77 // the actor could not be constructed
)

// Main is the main function of a program that an HCL block with actor {} runs: it
// constructs the actor of the class that FRAY_ACTOR_CLASS names among the
// factories, from FRAY_ACTOR_ARGS, and serves it under FRAY_ACTOR_NAMES until ctx
// ends or SIGTERM comes. What goes wrong is written to stderr, os.Stderr, which
// is where create_actor finds it:
//
//	os.Exit(int(host.Main(context.Background(), os.Stderr, map[string]host.Factory{"Counter": newCounter})))
func Main(ctx context.Context, stderr io.Writer, factories map[string]Factory) Status {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	names, err := actorNames(os.Getenv)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return StatusFailed
	}
	value, options, err := construct(ctx, factories, os.Getenv)
	if err != nil {
		fmt.Fprintln(stderr, err)
		if err := recordEnd(os.Getenv(envTermination), err); err != nil {
			fmt.Fprintln(stderr, err)
		}
		return StatusConstructor
	}
	if err := blockOptions(&options, os.Getenv(envOptions)); err != nil {
		fmt.Fprintln(stderr, err)
		return StatusFailed
	}
	err = serveNames(ctx, stderr, names, value, options)
	if err == nil {
		return StatusOK
	}
	fmt.Fprintln(stderr, err)
	if !isInvalid(err) {
		return StatusFailed
	}
	if err := recordEnd(os.Getenv(envTermination), err); err != nil {
		fmt.Fprintln(stderr, err)
	}
	return StatusConstructor
}

// An invalidError is why an actor can never be hosted: another attempt would fail too.
type invalidError struct{ error }

func (e invalidError) Unwrap() error { return e.error }

func isInvalid(err error) bool {
	_, ok := errors.AsType[invalidError](err)
	return ok
}

// recordEnd records why there is no actor where the agent reads it, and nowhere
// without an agent.
func recordEnd(path string, why error) error {
	if path == "" {
		return nil
	}
	message, trace, _ := strings.Cut(why.Error(), "\n") // a panic has its stack below
	cause := "actor_unmade"
	if isInvalid(why) {
		cause = "actor_invalid"
	}
	record, err := json.Marshal(map[string]string{"cause": cause, "message": message, "trace": trace})
	if err == nil {
		err = os.WriteFile(path, record, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record why there is no actor: %w", err)
	}
	return nil
}

func actorNames(getenv func(string) string) ([]string, error) {
	var names []string
	if err := json.Unmarshal([]byte(getenv(envNames)), &names); err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s is %q: want a JSON list of the actor's names", envNames, getenv(envNames))
	}
	text := getenv(envTasks)
	if text == "" {
		return names, nil
	}
	tasks, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: want a number", envTasks, text)
	}
	return namesOfTask(names, cmp.Or(getenv(envTask), "0"), tasks), nil
}

// namesOfTask are the names that one task of several has. Those of the replica are its
// first task's, or a caller would get now one, now another; each task has the last of
// them with its index besides: "inference_0/3".
func namesOfTask(names []string, task string, tasks int) []string {
	if tasks <= 1 {
		return names
	}
	own := names[len(names)-1] + "/" + task
	if task != "0" {
		return []string{own}
	}
	return append(slices.Clone(names), own)
}

// blockOptions sets the options of the block over those of the factory.
func blockOptions(options *Options, text string) error {
	if text == "" {
		return nil
	}
	var given struct {
		MaxConcurrency int            `json:"max_concurrency"`
		Groups         map[string]int `json:"concurrency_groups"`
	}
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return fmt.Errorf("%s is %q: %w", envOptions, text, err)
	}
	options.MaxConcurrency = cmp.Or(given.MaxConcurrency, options.MaxConcurrency)
	if len(given.Groups) > 0 {
		options.Groups = maps.Clone(options.Groups)
		if options.Groups == nil {
			options.Groups = map[string]int{}
		}
		maps.Copy(options.Groups, given.Groups)
	}
	return nil
}

// construct makes the actor. A panic of its factory is an error with its stack.
func construct(ctx context.Context, factories map[string]Factory, getenv func(string) string) (value any, options Options, err error) {
	class := getenv(envClass)
	factory := factories[class]
	if factory == nil {
		known := slices.Sorted(maps.Keys(factories))
		text := "this program has " + strings.Join(known, ", ")
		if found := rpcerror.Suggest(class, known); len(found) > 0 {
			text = "did you mean " + strings.Join(found, ", ") + "?"
		}
		return nil, Options{}, invalidError{fmt.Errorf("there is no actor class %q (%s); %s", class, envClass, text)}
	}
	args := getenv(envArgs)
	if args == "" {
		args = "{}"
	}
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("construct %s: panic: %v\n%s", class, problem, debug.Stack())
		}
	}()
	if value, options, err = factory(ctx, json.RawMessage(args)); err != nil {
		return nil, Options{}, fmt.Errorf("construct %s: %w", class, err)
	}
	return value, options, nil
}

func serveNames(ctx context.Context, stderr io.Writer, names []string, value any, options Options) error {
	cfg, release, err := FromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	defer release()
	if cfg.Metadata != nil {
		// It outlives ctx: methods that are to finish may call others.
		if cfg.Client, err = actorrpc.FromEnvironment(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		defer func() { _ = cfg.Client.Close() }()
	}
	cfg.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := New(cfg)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := s.Register(name, value, options); err != nil {
			return invalidError{err} // the cluster is asked later
		}
	}
	return s.Serve(ctx)
}
