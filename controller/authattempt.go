package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/state"
)

// unseenWait is how long a call of an attempt waits that the loop has not seen
// yet: its task may be faster than the step that started it.
const unseenWait = 5 * time.Second

// attempts knows which attempts run, by the View, and ends the calls of those
// that do not any more. One goroutine looks, however many calls there are.
type attempts struct {
	desk  desk
	epoch uint64 // of the lease: Views of an earlier one tell nothing
	jobs  jobIndex

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

func newAttempts(d desk, epoch uint64) *attempts {
	return &attempts{desk: d, epoch: epoch, live: map[attemptKey]*liveAttempt{}}
}

// hold lets a call of an attempt in if that runs, on the host that vouches for it;
// release follows.
func (a *attempts) hold(ctx context.Context, who caller) (*liveAttempt, error) {
	key := attemptKey{who.JobID, who.Attempt}
	if err := a.wait(ctx, key); err != nil {
		return nil, err
	}
	if err := a.assigned(a.desk.View(), who); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.standing(a.desk.View(), key); errors.Is(err, errJobEnded) { // after the last sweep, maybe
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
		changed := a.desk.Changed()
		err := a.standing(a.desk.View(), key)
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

// standing is nil for an attempt that runs, errJobEnded or errUnseen. One that
// is being stopped runs: its tasks may say goodbye.
func (a *attempts) standing(v *View, key attemptKey) error {
	if v == nil || v.Lease.Epoch != a.epoch {
		return errUnseen
	}
	j := a.jobs.of(v)[key.job]
	switch last := lastOf(j); {
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
func (a *attempts) assigned(v *View, who caller) error {
	j := a.jobs.of(v)[who.JobID]
	last := lastOf(j)
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
func (a *attempts) user(who caller) string {
	if j := a.jobs.of(a.desk.View())[who.JobID]; j != nil && j.Spec != nil {
		return j.Spec.User
	}
	return who.User
}

func lastOf(j *state.Job) *state.Attempt {
	if j == nil {
		return nil
	}
	return j.Last()
}

// run ends the calls of attempts that have ended, until ctx ends.
func (a *attempts) run(ctx context.Context) {
	for {
		changed := a.desk.Changed()
		a.sweep(a.desk.View())
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (a *attempts) sweep(v *View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, l := range a.live {
		if errors.Is(a.standing(v, key), errJobEnded) {
			l.end(errJobEnded)
		}
	}
}

// jobIndex finds the jobs of a View by id.
type jobIndex struct {
	mu   sync.Mutex
	doc  *state.Document
	byID map[string]*state.Job
}

// of returns the jobs of a View, those whose name was taken by another included.
func (x *jobIndex) of(v *View) map[string]*state.Job {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.doc == v.Doc {
		return x.byID
	}
	byID := make(map[string]*state.Job, len(v.Doc.Jobs)+len(v.Doc.Past))
	for _, j := range v.Doc.Past {
		byID[j.ID] = j
	}
	for _, j := range v.Doc.Jobs {
		byID[j.ID] = j
	}
	x.doc, x.byID = v.Doc, byID
	return byID
}
