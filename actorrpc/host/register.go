package host

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

// RegisterProblem is a closed set of what keeps a name from being registered.
type RegisterProblem string

// The problems.
const (
	ProblemEnded     RegisterProblem = "ended"     // the job or task has ended: this process is to end, too
	ProblemDuplicate RegisterProblem = "duplicate" // another actor has the name, and it is to be unique
	ProblemRefused   RegisterProblem = "refused"   // by the cluster, for another reason
	ProblemGaveUp    RegisterProblem = "gave_up"   // no cluster answered for as long as there was time
)

// RegisterError is why an actor has no name in the cluster.
type RegisterError struct {
	Name    string
	Problem RegisterProblem
	Message string
}

func (e *RegisterError) Error() string {
	return fmt.Sprintf("register actor %q: %s", e.Name, e.Message)
}

// Times of registering.
const (
	registerTry   = 15 * time.Second // one try
	registerPause = 50 * time.Millisecond
	registerMost  = 2 * time.Second // between tries
	withdrawTime  = 3 * time.Second
	atOnce        = 16 // names
)

// registrar keeps the names of a server's actors in the cluster.
type registrar struct {
	cfg     Config
	log     *slog.Logger
	life    context.Context // until Shutdown begins
	endLife context.CancelFunc
}

func newRegistrar(cfg Config) *registrar {
	r := &registrar{cfg: cfg, log: cfg.Log}
	r.life, r.endLife = context.WithCancel(context.Background())
	return r
}

// announce registers an actor at the cluster, which may be tried often. While
// no controller leads it goes on in the background.
func (r *registrar) announce(ctx context.Context, a *actor, address string) error {
	if r.cfg.Metadata == nil {
		return nil
	}
	about := map[string]string{"protocol": "fray-actor/1", "language": "go", "class": a.class.name}
	maps.Copy(about, a.options.Metadata)
	in := &clusterapi.RegisterRequest{
		Name: a.name, Address: address, JobId: r.cfg.JobID, Task: int32(r.cfg.Task), Metadata: about,
		Unique: a.options.Unique, ActorId: a.incarnation, RequestId: a.incarnation,
	}
	for pause := registerPause; ; pause = min(2*pause, registerMost) {
		leaderless, err := r.registerOnce(ctx, in)
		if leaderless {
			go r.keepTrying(a, in)
			return nil
		}
		problem := registerError(a.name, err)
		if problem == nil {
			return nil
		}
		if ctx.Err() == nil && problem.Problem != ProblemGaveUp {
			return problem
		}
		r.log.Warn("an actor is not registered yet", "actor", a.name, "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			problem.Problem = ProblemGaveUp
			return problem
		}
	}
}

// registerError is what an answer of the cluster means; ProblemGaveUp is for
// what passes.
func registerError(name string, err error) *RegisterError {
	e := &RegisterError{Name: name, Message: status.Convert(err).Message()}
	switch status.Code(err) {
	case codes.OK:
		return nil
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		e.Problem = ProblemGaveUp
	case codes.FailedPrecondition, codes.NotFound:
		e.Problem = ProblemEnded
	case codes.AlreadyExists:
		e.Problem = ProblemDuplicate
	default:
		e.Problem = ProblemRefused
	}
	return e
}

// withdraw takes the name of an actor back.
func (r *registrar) withdraw(ctx context.Context, a *actor) error {
	if r.cfg.Metadata == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, clusterapi.NoWaitHeader, "1"), withdrawTime)
	defer cancel()
	_, err := r.cfg.Metadata.Unregister(ctx, &clusterapi.UnregisterRequest{ActorId: a.incarnation})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("unregister actor %q: %w", a.name, err)
	}
	return nil
}

// announceAll registers all actors, or returns why one of them cannot be.
func (r *registrar) announceAll(ctx context.Context, actors []*actor, address string) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for _, a := range actors {
		all.Go(func() error { return r.announce(ctx, a, address) })
	}
	return all.Wait()
}

// withdrawAll takes all names back, as far as the cluster can be reached.
func (r *registrar) withdrawAll(ctx context.Context, actors []*actor) {
	if r.cfg.Metadata == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, withdrawTime)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, a := range actors {
		all.Go(func() error {
			if err := r.withdraw(ctx, a); err != nil {
				r.log.Warn("the cluster does not know that an actor is gone; it will when the task ends", "actor", a.name, "error", err)
			}
			return nil
		})
	}
	_ = all.Wait()
}
