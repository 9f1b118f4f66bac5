package notices

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// rejections is after how many of them in a row a notice is not offered again.
const rejections = 3

// parting is how long deliveries under way may take once this process is to lead no more.
const parting = 2 * time.Second

// longestRetry bounds the wait that a receiver may ask for.
const longestRetry = time.Hour

// courier is what is known of the deliveries to one receiver.
type courier struct {
	busy     bool
	failures int // in a row
	rejected int // in a row, of the same notice
	next     time.Time
	under    *schema.Notification // of the last failure: another spec is tried at once
}

// outcome is how a delivery ended.
type outcome struct {
	name     string
	delivery notice.Delivery
	under    *schema.Notification
	failure  *Failure // nil: it was taken
}

// Deliver sends what is saved until ctx ends, to each receiver one notice at a time, oldest
// first, and tries again what failed.
func (k *Keeper) Deliver(ctx context.Context) {
	s := NewSender(k.cfg.Reveal, k.cfg.HTTP, k.cfg.Command)
	couriers := map[string]*courier{}
	outcomes := make(chan outcome)
	busy := 0
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	for ctx.Err() == nil {
		next := time.Hour
		for _, o := range k.due() {
			c := couriers[o.name]
			if c == nil {
				c = &courier{}
				couriers[o.name] = c
			}
			wait := time.Until(c.next)
			switch {
			case c.busy:
			case wait > 0 && c.under == o.under:
				next = min(next, wait)
			default:
				c.busy = true
				busy++
				go func() {
					o.failure = s.Send(sending, o.under, o.delivery.Notice, o.delivery.To)
					outcomes <- o
				}()
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.changed:
		case o := <-outcomes:
			busy--
			k.conclude(ctx, couriers[o.name], o)
		}
		timer.Stop()
	}
	// What was taken is recorded by the loop's last save, and so is not sent again.
	last := time.AfterFunc(parting, cut)
	defer last.Stop()
	for ; busy > 0; busy-- {
		if o := <-outcomes; o.failure == nil {
			k.conclude(ctx, couriers[o.name], o)
		}
	}
}

// due is the oldest saved notice of each receiver.
func (k *Keeper) due() []outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.saved == nil || k.saved.Epoch != k.cfg.Epoch || k.cfg.Valid() != nil {
		return nil
	}
	var due []outcome
	for addr, n := range k.notifications {
		for _, to := range n.Receivers() {
			// What is not in the ledger any more was taken, and that is only not written yet.
			saved, waiting := k.saved.Waiting(addr, to), k.ledger.Waiting(addr, to)
			if len(saved) > 0 && len(waiting) > 0 && isAmong(saved, waiting[0].Notice.ID) {
				due = append(due, outcome{name: notice.ReceiverName(addr, to), delivery: waiting[0], under: n})
			}
		}
	}
	return due
}

func isAmong(all []notice.Delivery, id string) bool {
	for i := range all {
		if all[i].Notice.ID == id {
			return true
		}
	}
	return false
}

// conclude records how a delivery ended.
func (k *Keeper) conclude(ctx context.Context, c *courier, o outcome) {
	now := time.Now()
	of, to, id := o.delivery.Notice.Notification, o.delivery.To, o.delivery.Notice.ID
	c.busy = false
	event := func(level state.EventLevel, text string) state.Event {
		return state.Event{At: now.UTC(), Kind: state.EventNotice, Addr: of, Level: level, Text: text}
	}
	if o.failure == nil {
		text := fmt.Sprintf("%s was told: %s", to, o.delivery.Notice.Title)
		if c.failures > 0 {
			text = fmt.Sprintf("%s takes messages again; it was told: %s", to, o.delivery.Notice.Title)
		}
		c.failures, c.rejected, c.next = 0, 0, time.Time{}
		k.settle(func(l *notice.Ledger) *notice.Ledger { return notice.Delivered(l, id, to) }, event(state.EventInfo, text))
		k.count(of, to, ResultSent)
		k.saveSoon(ctx)
		return
	}
	c.failures++
	c.under = o.under
	if c.rejected++; !o.failure.Rejected {
		c.rejected = 0
	}
	if c.rejected >= rejections {
		c.rejected, c.next = 0, now.Add(k.cfg.Backoff(1))
		k.settle(func(l *notice.Ledger) *notice.Ledger { return notice.GivenUp(l, id, to) },
			event(state.EventError, fmt.Sprintf("%s rejects %q, which is not sent again: %s", to, o.delivery.Notice.Title, o.failure.Text)))
		k.count(of, to, ResultDropped)
		k.saveSoon(ctx)
		return
	}
	c.next = now.Add(min(max(k.cfg.Backoff(c.failures), o.failure.After), longestRetry))
	var events []state.Event
	if c.failures == 1 {
		events = append(events, event(state.EventWarn, fmt.Sprintf("%s cannot be told, and is tried again: %s", to, o.failure.Text)))
		k.cfg.Log.Warn("a notice could not be delivered; it is tried again", "notification", of.String(), "receiver", string(to), "why", o.failure.Text)
	}
	k.settle(func(l *notice.Ledger) *notice.Ledger {
		return notice.Failed(l, of, to, notice.Failure{Since: now.UTC(), Cause: o.failure.Cause, Code: o.failure.Code, Text: o.failure.Text})
	}, events...)
	k.count(of, to, ResultFailed)
	k.saveSoon(ctx)
}

// saveSoon writes what became of a delivery. Where that fails, the next save does it.
func (k *Keeper) saveSoon(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	early := time.Since(k.savedAt) < k.cfg.Store.WriteInterval()
	k.mu.Unlock()
	if early {
		return // the next step's
	}
	if err := k.Save(ctx); err != nil && ctx.Err() == nil {
		k.cfg.Log.Warn("what was notified is not recorded yet", "error", err.Error())
	}
}

func (k *Keeper) count(of schema.Address, to schema.Receiver, result Result) {
	if k.cfg.Counted != nil {
		k.cfg.Counted(of, to, result)
	}
}
