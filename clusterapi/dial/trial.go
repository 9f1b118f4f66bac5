package dial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/state/store"
)

// Pauses between two tries of a call.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	leastPause = 10 * time.Millisecond
)

// trial is what came of a call so far.
type trial struct {
	count int
	began time.Time // the first failure
	last  error
	pause time.Duration
}

func (t *trial) note(err error) {
	if t.count == 0 {
		t.began, t.pause = time.Now(), firstPause
	}
	t.count++
	// That time is up says less than what was tried until then.
	if t.last == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.last = err
	}
}

// wait returns when to try again, or how the call ends.
func (t *trial) wait(ctx context.Context, patience time.Duration) error {
	pause := time.Duration(float64(t.pause) * (0.75 + rand.Float64()/2))
	t.pause = min(2*t.pause, lastPause)
	deadline, bound := ctx.Deadline()
	if bound {
		pause = min(pause, time.Until(deadline)/2) // one last time shortly before
	}
	switch {
	case ctx.Err() != nil:
		return t.failure(status.FromContextError(ctx.Err()).Code())
	case bound && pause < leastPause:
		return t.failure(codes.DeadlineExceeded)
	case !bound && time.Since(t.began)+pause > patience:
		return t.failure(codes.Unavailable)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return t.failure(status.FromContextError(ctx.Err()).Code())
	case <-timer.C:
		return nil
	}
}

// failure says what was tried.
func (t *trial) failure(code codes.Code) error {
	times := "once"
	if t.count > 1 {
		times = fmt.Sprintf("%d times in %s", t.count, time.Since(t.began).Round(100*time.Millisecond))
	}
	return status.Errorf(code, "no controller: %v (tried %s)", t.last, times)
}

// final is the answer of a controller; one that came too late says what went before.
func (t *trial) final(err error) error {
	if t.count > 0 && status.Code(err) == codes.DeadlineExceeded {
		return t.failure(codes.DeadlineExceeded)
	}
	return err
}

// servable says why nobody can be asked, nil if the lease's holder can.
func servable(l store.Lease, err error) error {
	const start = "start one with fray watch"
	switch {
	case err != nil:
		return errors.New("nobody has held this stack's lease yet; " + start)
	case l.Released:
		return fmt.Errorf("the lease is free since %s; %s", clock(l.ExpiresAt), start)
	case l.ControllerAddress == "":
		return fmt.Errorf("%s holds the lease and serves nothing; wait until it is done", who(l))
	}
	return nil
}

// describe says who did not answer. The lease's times are its holder's, so that
// one which seems to have lapsed is tried all the same.
func (l *leader) describe(err error) error {
	text := fmt.Sprintf("%s at %s: %s", who(l.lease), l.lease.ControllerAddress, status.Convert(err).Message())
	if now := time.Now(); !l.lease.Live(now) {
		text += fmt.Sprintf("; its lease lapsed at %s; start another with fray watch", clock(l.lease.ExpiresAt))
	}
	return errors.New(text)
}

func who(l store.Lease) string {
	return fmt.Sprintf("%s@%s (pid %d, %s)", l.User, l.Host, l.PID, l.Command)
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }
