package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/loader"
)

// LeaseExchange is what a worker asks of a loader at once.
type LeaseExchange struct {
	Done []DoneLease `json:"done,omitempty"` // leases whose tasks have ended
	Held []string    `json:"held,omitempty"` // further leases that the worker knows to have
	Want int         `json:"want,omitempty"` // how many tasks it can begin
	// Wait is for how many seconds to wait for a task where there is none now.
	Wait float64 `json:"wait,omitempty"`
}

// DoneLease is a lease that ends with its task.
type DoneLease struct {
	Lease   string `json:"lease"`
	Outcome string `json:"outcome"`
}

// longestExchange is how many leases one call may end or ask for.
const longestExchange = 1 << 12

// ExchangeLeases ends leases of a worker with their tasks, and leases further ones to it: what Complete and GetNextItem do, in one
// step and with one record. Leases of this incarnation that the worker does not name are of an answer that it did not get, and
// come again first. Without a task it answers once there is one, or after the time that the worker waits: with none.
func (l *Loader) ExchangeLeases(ctx context.Context, worker, incarnation string, x LeaseExchange) ([]rl.Task, error) {
	asked, err := x.of(worker, incarnation)
	if err != nil {
		return nil, fmt.Errorf("exchange_leases: %w", err)
	}
	ctx, cancel := within(ctx, x.Wait)
	defer cancel()
	for isFirst := true; ; isFirst = false {
		grants, at, available, err := l.exchange(asked, isFirst)
		if err != nil {
			return nil, err
		}
		if len(grants) > 0 || asked.Want == 0 || x.Wait <= 0 {
			return l.tasks(grants, at)
		}
		select {
		case <-available:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // nothing is leased to a caller that has gone
			return l.tasks(nil, at)
		}
	}
}

func (x LeaseExchange) of(worker, incarnation string) (loader.Exchange, error) {
	asked := loader.Exchange{Worker: worker, Incarnation: incarnation, Held: x.Held, Want: x.Want}
	if worker == "" {
		return asked, errors.New("worker is empty: want the name of the worker that leases the tasks")
	}
	if x.Want < 0 || max(x.Want, len(x.Done), len(x.Held)) > longestExchange {
		return asked, fmt.Errorf("done %d, held %d, want %d: want 0 to %d of each", len(x.Done), len(x.Held), x.Want, longestExchange)
	}
	for _, done := range x.Done {
		if _, err := rl.ParseTaskOutcome(done.Outcome); err != nil {
			return asked, err
		}
		asked.Done = append(asked.Done, done.Lease)
	}
	return asked, nil
}

// exchange carries an exchange out, and returns what to wait for where it has granted nothing. One that has waited does not end
// the leases of a later incarnation: the worker that asked has died meanwhile.
func (l *Loader) exchange(x loader.Exchange, isFirst bool) ([]loader.Grant, journal.Position, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, at := l.now(), l.record.Last
	if !isFirst && l.machine.IsReplaced(x.Worker, x.Incarnation) {
		return nil, at, l.available.changed, nil
	}
	grants, changed := l.machine.Exchange(x, now)
	var err error
	if changed {
		l.expectExpiry()
		at, err = l.note(loaderCommand{Op: opExchange, Worker: x.Worker, Incarnation: x.Incarnation, IDs: x.Done, Held: x.Held, N: x.Want, Now: now}, nil)
	}
	return grants, at, l.available.changed, err
}

// tasks are what was granted, once that is durable.
func (l *Loader) tasks(grants []loader.Grant, at journal.Position) ([]rl.Task, error) {
	if err := l.record.Wait(at); err != nil {
		return nil, err
	}
	tasks := make([]rl.Task, len(grants))
	for i, grant := range grants {
		item, err := l.item(grant.Entry)
		if err != nil {
			return nil, err
		}
		tasks[i] = rl.Task{Item: item, Lease: grant.Lease}
	}
	return tasks, nil
}

// WaitQuiet returns the loader's status as soon as nothing is rolled out and nothing is to be, or after so many seconds.
func (l *Loader) WaitQuiet(ctx context.Context, seconds float64) rl.LoaderStatus {
	ctx, cancel := within(ctx, seconds)
	defer cancel()
	for {
		l.mu.Lock()
		status, quiet := l.machine.Status(), l.quiet.changed
		l.mu.Unlock()
		if status.Quiet() {
			return status
		}
		select {
		case <-quiet:
		case <-ctx.Done():
			return status
		}
	}
}
