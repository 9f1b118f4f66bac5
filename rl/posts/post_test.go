package posts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/config"
)

// wandb is the actor of wandb, which answers as it is told; then it takes what comes.
type wandb struct {
	answers []error
	taken   []string
}

func (w *wandb) Call(ctx context.Context, actor, method string, args ...any) (any, error) {
	if len(w.answers) > 0 {
		answer := w.answers[0]
		w.answers = w.answers[1:]
		if answer != nil {
			return nil, answer
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w.taken = append(w.taken, fmt.Sprint(actor, ".", method, args))
	return true, nil
}

func newPoster(t *testing.T, peers Peers) *Poster {
	t.Helper()
	cfg := config.Defaults()
	cfg.Logger.Backend = config.Backends{rl.LogWandb}
	p, err := New(cfg, peers, time.Now, t.Output(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func post(t *testing.T, p *Poster, id string) {
	t.Helper()
	if err := p.Post(rl.LogWandb, map[string]any{"id": id}); err != nil {
		t.Fatal(err)
	}
}

// TestN88_PostsWaitForTheLogger: one that the actor may have had, or has rejected, is not made again; one that has not reached it
// is.
func TestN88_PostsWaitForTheLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: "it is being started"}
		peers := &wandb{answers: []error{
			&rpcerror.Error{Code: rpcerror.CodeMaybeExecuted, Message: "the connection was lost"},
			&rpcerror.Error{Code: rpcerror.CodeApplication, Message: "no such metric"},
			away, away, away,
		}}
		p := newPoster(t, peers)
		ctx, cancel := context.WithCancel(t.Context())
		go p.Tend(ctx)
		for _, id := range []string{"lost", "rejected", "late", "late", "last"} {
			post(t, p, id)
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{"experiment_logger.post[wandb map[id:late]]", "experiment_logger.post[wandb map[id:last]]"}
		if !slices.Equal(peers.taken, want) {
			t.Errorf("it has %q, want %q", peers.taken, want)
		}
		cancel()
	})
}

// A flush of posts that cannot be delivered ends with its context, and names how many there are.
func TestN88_AFlushEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoster(t, &wandb{answers: []error{nil}})
		ctx, cancel := context.WithCancel(t.Context())
		go p.Tend(ctx)
		post(t, p, "a")
		post(t, p, "b")
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := p.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends by %v", err)
		}
		cancel()
	})
}
