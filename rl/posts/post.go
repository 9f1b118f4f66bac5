package posts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/experiment"
	"github.com/fray-ml/fray/sleep"
)

// Peers calls the other actors of a run.
type Peers interface {
	Call(ctx context.Context, actor, method string, args ...any) (any, error)
}

// Poster gives what is posted to the loggers of a run. Files are written at once; the Python actor of wandb is called
// in turn, so that a slow network blocks no step.
type Poster struct {
	loggers map[rl.LoggerBackend]experiment.Logger
	peers   Peers
	remote  chan posted // nil: there is no wandb
	once    *postedIDs
	now     func() time.Time
	log     *slog.Logger
}

type posted struct {
	backend rl.LoggerBackend
	fields  map[string]any
	flushed chan struct{} // of no post: closed once all before it are done
}

// The waits between two calls of an actor that is not there.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// waitingPosts is how many posts wait for wandb before further ones are dropped.
const waitingPosts = 10_000

// New opens the loggers of a configuration; the console is out.
func New(cfg *config.Config, peers Peers, now func() time.Time, out io.Writer, log *slog.Logger) (*Poster, error) {
	p := &Poster{loggers: map[rl.LoggerBackend]experiment.Logger{}, once: newPostedIDs(), peers: peers, now: now, log: log}
	for _, backend := range cfg.Logger.Backend {
		var logger experiment.Logger
		var err error
		switch backend {
		case rl.LogConsole:
			logger = experiment.NewConsole(out)
		case rl.LogJSONL:
			logger, err = experiment.NewJSONL(cfg.Metrics())
		case rl.LogTensorboard:
			host, _ := os.Hostname()
			logger, err = experiment.NewTensorboard(filepath.Join(cfg.Metrics(), "tensorboard"), host, now())
		case rl.LogWandb:
			p.remote = make(chan posted, waitingPosts)
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if logger != nil {
			p.loggers[backend] = logger
		}
	}
	return p, nil
}

// Post takes what a module posts. A backend that the run does not have takes nothing, and a post of an ID that was taken is
// not taken again: its caller may have lost the answer, or its step may have been made again after an interruption.
func (p *Poster) Post(backend rl.LoggerBackend, fields map[string]any) error {
	id, _ := fields["id"].(string)
	return p.once.do(backend, id, func() error { return p.give(backend, fields) })
}

func (p *Poster) give(backend rl.LoggerBackend, fields map[string]any) error {
	if backend == rl.LogWandb {
		if p.remote != nil {
			select {
			case p.remote <- posted{backend: backend, fields: fields}:
			default:
				p.log.Warn("wandb is behind: metrics are dropped", "waiting", waitingPosts)
			}
		}
		return nil
	}
	logger := p.loggers[backend]
	if logger == nil {
		return nil
	}
	r := experiment.Record{Time: p.now()}
	r.Data, _ = fields["data"].(map[string]any)
	if numbers, ok := fields["data"].(map[string]float64); ok {
		r.Data = map[string]any{}
		for name, number := range numbers {
			r.Data[name] = number
		}
	}
	if step, ok := experiment.Number(fields["step"]); ok {
		r.Step = int64(step)
	}
	r.Title, _ = fields["title"].(string)
	r.Content, _ = fields["content"].(string)
	r.ID, _ = fields["id"].(string)
	return logger.Log(r)
}

// Flush returns once the posts before it have reached the actor of wandb, or cannot; files have them at once.
func (p *Poster) Flush(ctx context.Context) error {
	if p.remote == nil {
		return nil
	}
	flushed := make(chan struct{})
	select {
	case p.remote <- posted{flushed: flushed}:
	case <-ctx.Done():
		return p.unflushed(ctx)
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return p.unflushed(ctx)
	}
}

func (p *Poster) unflushed(ctx context.Context) error {
	return fmt.Errorf("%d posts have not reached wandb: %w", len(p.remote)+1, ctx.Err())
}

// Recall has posts be known that a former process has taken up to a step: their callers may not have the answer.
func (p *Poster) Recall(step int64) error {
	file, ok := p.loggers[rl.LogJSONL].(*experiment.JSONL)
	if !ok {
		return nil
	}
	ids, err := file.IDs(step, keptPosts)
	if err != nil {
		return err
	}
	slices.Reverse(ids)
	for _, id := range ids {
		p.once.know(rl.LogJSONL, id)
	}
	return nil
}

// Tend calls the actor of wandb until ctx ends.
func (p *Poster) Tend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			if left := len(p.remote); left > 0 {
				p.log.Warn("metrics did not reach wandb before the end of the process", "posts", left)
			}
			return
		case next := <-p.remote:
			if next.flushed != nil {
				close(next.flushed)
			} else {
				p.deliver(ctx, next)
			}
		}
	}
}

// deliver calls the actor of wandb once it is there. A call that it may have had is not made again.
func (p *Poster) deliver(ctx context.Context, next posted) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		_, err := p.peers.Call(ctx, string(rl.ExperimentLogger), "post", string(next.backend), next.fields)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !isAbsent(err) {
			p.log.Warn("metrics did not reach wandb", "error", err)
			return
		}
		if wait == firstWait {
			p.log.Warn("metrics wait for the role experiment_logger", "waiting", len(p.remote)+1, "error", err)
		}
		if !sleep.For(ctx, wait) {
			return
		}
	}
}

// Forget lets all posts be taken again: the run goes back to an earlier step, whose metrics are others then.
func (p *Poster) Forget() { p.once.forget() }

// isAbsent reports whether a call has not run, since its actor is not there, and may be made again.
func isAbsent(err error) bool {
	e, ok := errors.AsType[*rpcerror.Error](err)
	return ok && !e.Ran && slices.Contains([]rpcerror.Code{
		rpcerror.CodeUnknownActor, rpcerror.CodeUnavailable, rpcerror.CodeStale, rpcerror.CodeStopping, rpcerror.CodeActorDead, rpcerror.CodeBusy,
	}, e.Code)
}

// Close closes the loggers.
func (p *Poster) Close() error {
	var all error
	for _, backend := range slices.Sorted(maps.Keys(p.loggers)) {
		if err := p.loggers[backend].Close(); err != nil {
			all = errors.Join(all, fmt.Errorf("close the logger %s: %w", backend, err))
		}
	}
	return all
}
