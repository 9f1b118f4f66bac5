package apiserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/state"
)

// unseenWait is how long a call of an attempt waits that the loop has not seen
// yet: its task may be faster than the step that started it.
const unseenWait = 5 * time.Second

// attempts knows which attempts run, by the View, and ends the calls of those
// that do not any more. One goroutine looks, however many calls there are.
type attempts struct {
	views access.Views
	epoch uint64 // of the lease: Views of an earlier one tell nothing
	jobs  jobs.Cache

	mu   sync.Mutex
	live map[attemptKey]*liveAttempt // those that calls are made for
}

type attemptKey struct {
	job    string // id
	number int
}

// liveAttempt is shared by all calls of one attempt.
type liveAttempt struct {
	key   attemptKey
	calls int
	ctx   context.Context // ends with errJobEnded
	end   context.CancelCauseFunc
}

func newAttempts(views access.Views, epoch uint64) *attempts {
	return &attempts{views: views, epoch: epoch, live: map[attemptKey]*liveAttempt{}}
}

// hold lets a call of an attempt in if that runs, on the host that vouches for it;
// release follows.
func (a *attempts) hold(ctx context.Context, who caller.Caller) (*liveAttempt, error) {
	key := attemptKey{who.JobID, who.Attempt}
	if err := a.wait(ctx, key); err != nil {
		return nil, err
	}
	if err := a.assigned(a.views.View(), who); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.check(a.views.View(), key); errors.Is(err, errJobEnded) { // after the last sweep, maybe
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	l := a.live[key]
	if l == nil {
		l = &liveAttempt{key: key}
		l.ctx, l.end = context.WithCancelCause(context.Background())
		a.live[key] = l
	}
	l.calls++
	return l, nil
}

func (a *attempts) release(l *liveAttempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.calls--; l.calls == 0 {
		l.end(nil)
		delete(a.live, l.key)
	}
}

// wait returns nil once the attempt is seen to run.
func (a *attempts) wait(ctx context.Context, key attemptKey) error {
	var timeout <-chan time.Time
	for {
		changed := a.views.Changed()
		err := a.check(a.views.View(), key)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errUnseen):
			return status.Error(codes.Unauthenticated, err.Error())
		case timeout == nil:
			timer := time.NewTimer(unseenWait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-changed:
		case <-timeout:
			return status.Error(codes.Unavailable, err.Error())
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// check is nil for an attempt that runs, errJobEnded or errUnseen. One that
// is being stopped runs: its tasks may still close what they opened.
func (a *attempts) check(v *access.View, key attemptKey) error {
	if v == nil || v.Lease.Epoch != a.epoch {
		return errUnseen
	}
	j := a.jobs.Of(v.Doc).ByID(key.job)
	switch last := jobs.Last(j); {
	case j == nil:
		return errJobEnded
	case last == nil || last.Number < key.number:
		return errUnseen
	case last.Number > key.number || last.Outcome != "":
		return errJobEnded
	}
	return nil
}

// assigned is nil if the attempt runs on the host whose key signed the caller's
// token, in the namespace that it claims: a host speaks for what it was given, and
// for nothing else.
func (a *attempts) assigned(v *access.View, who caller.Caller) error {
	j := a.jobs.Of(v.Doc).ByID(who.JobID)
	last := jobs.Last(j)
	if last == nil || last.Number != who.Attempt {
		return nil // it has ended a moment ago, as the caller will see
	}
	if !slices.ContainsFunc(last.Tasks, func(t state.Task) bool { return t.Slice == who.Slice && t.Host == who.Host }) {
		return status.Errorf(codes.Unauthenticated, "host %d of slice %s signed the token, and attempt %d of job %s has no task there",
			who.Host, who.Slice, who.Attempt, who.JobID)
	}
	if j.Spec != nil && j.Spec.Namespace != who.Namespace {
		return status.Errorf(codes.Unauthenticated, "the token is for namespace %q, and job %s is in %q; restart the job to give it another token",
			who.Namespace, who.JobID, j.Spec.Namespace)
	}
	return nil
}

// user is whose share a job uses, as the state has it.
func (a *attempts) user(who caller.Caller) string {
	if j := a.jobs.Of(a.views.View().Doc).ByID(who.JobID); j != nil && j.Spec != nil {
		return j.Spec.User
	}
	return who.User
}

// run ends the calls of attempts that have ended, until ctx ends.
func (a *attempts) run(ctx context.Context) {
	for {
		changed := a.views.Changed()
		a.sweep(a.views.View())
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (a *attempts) sweep(v *access.View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, l := range a.live {
		if errors.Is(a.check(v, key), errJobEnded) {
			l.end(errJobEnded)
		}
	}
}
