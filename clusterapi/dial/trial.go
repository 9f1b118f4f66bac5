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
	// That time is up explains less than what was tried until then.
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

// failure reports what was tried.
func (t *trial) failure(code codes.Code) error {
	times := "once"
	if t.count > 1 {
		times = fmt.Sprintf("%d times in %s", t.count, time.Since(t.began).Round(100*time.Millisecond))
	}
	return &failure{status: status.Newf(code, "no controller: %v (tried %s)", t.last, times), cause: t.last}
}

// failure is the status of a call that no controller answered, and why.
type failure struct {
	status *status.Status
	cause  error
}

func (f *failure) Error() string              { return f.status.Err().Error() }
func (f *failure) GRPCStatus() *status.Status { return f.status }
func (f *failure) Unwrap() error              { return f.cause }

// ErrNoController is the cause, to be tested with errors.Is, where no controller
// leads that could be asked.
var ErrNoController = errors.New("no controller leads")

// unled is the reason why no controller leads. It is an ErrNoController.
type unled string

func (u unled) Error() string        { return string(u) }
func (u unled) Is(target error) bool { return target == ErrNoController }

// final is the answer of a controller; one that came too late reports what went before.
func (t *trial) final(err error) error {
	if t.count > 0 && status.Code(err) == codes.DeadlineExceeded {
		return t.failure(codes.DeadlineExceeded)
	}
	return err
}

// servable returns why no controller can be asked, nil if the lease's holder can.
func servable(l store.Lease, err error) error {
	const start = "start one with fray watch"
	switch {
	case err != nil:
		return unled("no controller has held this stack's lease yet; " + start)
	case l.Released:
		return unled(fmt.Sprintf("the lease is free since %s; %s", clock(l.ExpiresAt), start))
	case l.ControllerAddress == "":
		return unled(who(l) + " holds the lease and serves nothing; wait until it is done")
	}
	return nil
}

// describe names the controller that did not answer. Whether a lease has lapsed is a matter of its
// holder's clock: it has if it was not renewed here for as long as it is valid. One
// that has by the clock of this machine is tried all the same.
func describe(err error, lease store.Lease, unrenewed time.Duration) error {
	text := fmt.Sprintf("%s at %s: %s", who(lease), lease.ControllerAddress, status.Convert(err).Message())
	switch {
	case unrenewed >= lease.ExpiresAt.Sub(lease.RenewedAt):
		text += fmt.Sprintf("; it has not renewed its lease for %s; start another with fray watch", unrenewed.Round(time.Second))
	case !lease.Live(time.Now()):
		text += fmt.Sprintf("; it renewed its lease last at %s, by its clock; if it is gone, start another with fray watch", clock(lease.RenewedAt))
	}
	return errors.New(text)
}

func who(l store.Lease) string {
	return fmt.Sprintf("%s@%s (pid %d, %s)", l.User, l.Host, l.PID, l.Command)
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }
