package controller

import (
	"context"
	"errors"
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

// hold lets a call of an attempt in if that runs; release follows.
func (a *attempts) hold(ctx context.Context, job string, number int) (*liveAttempt, error) {
	key := attemptKey{job, number}
	if err := a.wait(ctx, key); err != nil {
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
