package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
)

// Times of asking the leader.
const (
	answerPatience = 2 * time.Second        // for the first answer
	answerAgain    = 200 * time.Millisecond // for further ones; the last stands meanwhile
)

// presence is what is known of the leader.
type presence struct {
	lease store.Lease
	led   bool // there is a leader, as far as is known
	// unsure: the lease seems to have lapsed, by a clock that may be wrong, and
	// its next renewal has not been waited for yet.
	unsure bool
	silent bool // the controller that holds the lease was asked, and does not answer
}

// attention finds out whether a controller leads and answers, and does not delay its
// callers: what takes longer than its patience goes on beside the observations that
// follow. It is not for concurrent use.
type attention struct {
	store    store.Store
	clock    *store.LeaderClock
	patience time.Duration // for the next observation
	// ask reports whether the controller of a lease answers, before ctx ends.
	ask func(ctx context.Context, lease *store.Lease) bool

	sight  inquiry[store.Sight]
	answer inquiry[bool]
	asked  string // the address that answer is of
}

func newAttention(s *stack.Stack) *attention {
	return &attention{store: s.Store, clock: s.Clock, patience: answerPatience, ask: answers}
}

// observe returns what is known of the leader. What goes on after it ends with ctx.
func (a *attention) observe(ctx context.Context) (presence, error) {
	lease, err := store.ReadLease(ctx, a.store)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return presence{}, nil
	case err != nil:
		return presence{}, err
	case lease.Released:
		return presence{lease: lease}, nil
	}
	enough, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	a.patience = answerAgain
	a.sight.begin(func() (store.Sight, error) { return a.clock.Observe(ctx) })
	if a.asked != lease.ControllerAddress {
		a.asked, a.answer = lease.ControllerAddress, inquiry[bool]{}
	}
	if lease.ControllerAddress != "" {
		a.answer.begin(func() (bool, error) { return a.ask(ctx, &lease), nil })
	}
	a.await(enough)
	sight, sure, err := a.sight.last.value, a.sight.known, a.sight.last.err
	if err != nil {
		return presence{}, err
	}
	p := presence{lease: lease, led: sure && stack.Leads(sight), unsure: !sure}
	if lease.ControllerAddress == "" || p.led && !overdue(&lease, sight) {
		return p, ctx.Err()
	}
	answered := a.answer.latest(enough)
	if p.silent = !answered; answered && p.unsure {
		p.led, p.unsure = true, false
	}
	return p, ctx.Err()
}

// await waits until the lease shows whether a controller leads, and not much longer than
// until the controller answers.
func (a *attention) await(ctx context.Context) {
	var brief <-chan time.Time
	for {
		select {
		case r := <-a.sight.under:
			a.sight.take(r)
			return
		case r := <-a.answer.under:
			if a.answer.take(r); r.value {
				brief = time.After(answerAgain)
			}
		case <-brief:
			return
		case <-ctx.Done():
			return
		}
	}
}

// answers reports whether a controller is there.
func answers(ctx context.Context, lease *store.Lease) bool {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	return dial.Answers(ctx, lease.ControllerAddress, lease.ControllerFingerprint) == nil
}

// overdue reports whether a controller is worth asking: it is on this machine, or
// has not renewed its lease for longer than it does. One that does renew it may be
// out of reach from here and is there all the same.
func overdue(lease *store.Lease, sight store.Sight) bool {
	host, err := os.Hostname()
	return err == nil && host == lease.Host || sight.Now.Sub(lease.RenewedAt) > lease.ExpiresAt.Sub(lease.RenewedAt)/2
}

// inquiry is a question of which one is under way at a time. The zero one was
// never asked.
type inquiry[T any] struct {
	under chan result[T] // holds one answer in the end; nil: nothing is under way
	last  result[T]
	known bool // last was answered
}

type result[T any] struct {
	value T
	err   error
}

// begin asks, unless that is under way.
func (q *inquiry[T]) begin(ask func() (T, error)) {
	if q.under != nil {
		return
	}
	under := make(chan result[T], 1)
	q.under = under
	go func() {
		value, err := ask()
		under <- result[T]{value, err}
	}()
}

func (q *inquiry[T]) take(r result[T]) { q.last, q.known, q.under = r, true, nil }

// latest is the answer to what is under way or, if ctx ends before that, the last one.
func (q *inquiry[T]) latest(ctx context.Context) T {
	if q.under == nil {
		return q.last.value
	}
	select {
	case r := <-q.under:
		q.take(r)
	case <-ctx.Done():
	}
	return q.last.value
}

// silence reports since when a controller gives no sign, and what that means for what
// is shown.
func (v *View) silence() string {
	since := v.lease.RenewedAt.Local().Format(time.DateTime)
	who := fmt.Sprintf("%s (pid %d on %s)", cmp.Or(v.lease.Command, "fray"), v.lease.PID, v.lease.Host)
	if v.silent {
		return fmt.Sprintf("%s does not answer at %s; its last sign of life is of %s, by its clock. What is shown is from the store.", who, v.lease.ControllerAddress, since)
	}
	return fmt.Sprintf("%s has not renewed its lease since %s, by its clock. What is shown is from the store.", who, since)
}
