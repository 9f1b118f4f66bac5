package roles

import (
	"context"
	"sync"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/weights"
	"github.com/fray-ml/fray/sleep"
)

// Tend carries actions out, in their order, until ctx ends: each once the state that asks for it is durable. Copies run
// beside the others.
func (w *Weights) Tend(ctx context.Context) error {
	var copies sync.WaitGroup
	defer copies.Wait()
	for {
		w.mu.Lock()
		changed := w.changed.changed
		if len(w.queue) == 0 {
			w.mu.Unlock()
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		next := w.queue[0]
		w.mu.Unlock()
		if err := w.keep.Wait(next.at); err != nil {
			return err
		}
		if next.Verb == weights.Copy {
			copies.Go(func() { w.copy(ctx, next.Action) })
		} else if !w.carryOut(ctx, next.Action) {
			return nil
		}
		w.mu.Lock()
		w.queue = w.queue[1:]
		w.changed.notify()
		w.mu.Unlock()
		if next.done != nil {
			close(next.done)
		}
	}
}

// carryOut locks or unlocks, as often as it takes: a pool that is being restarted is there again some time. It
// reports whether that was done before ctx ended.
func (w *Weights) carryOut(ctx context.Context, action weights.Action) bool {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := w.attempt(ctx, action)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		w.log.Warn("weight sync waits for an actor", "action", action.Verb, "model", action.Tag, "error", err)
		if !sleep.For(ctx, wait) {
			return false
		}
	}
}

func (w *Weights) attempt(ctx context.Context, action weights.Action) error {
	switch action.Verb {
	case weights.LockPools:
		return peer.ErrorOf("notify_weight_sync_starting", peer.CallAll(ctx, w.peers, w.pools, "notify_weight_sync_starting", action.Tag))
	case weights.UnlockPools:
		return peer.ErrorOf("unlock_for_weight_sync", peer.CallAll(ctx, w.peers, w.pools, "unlock_for_weight_sync", action.Tag, action.Version))
	case weights.UnlockLoader:
		return w.unlockLoader(ctx, action)
	case weights.Copy:
	}
	return nil
}

// unlockLoader unlocks the loader where it was before the first attempt: a further one changes nothing if the answer to
// another was lost.
func (w *Weights) unlockLoader(ctx context.Context, action weights.Action) error {
	name := string(rl.DataLoader)
	at, isFirst := w.of(action.Tag).UnlockAt, false
	for {
		if at == nil {
			status, err := peer.Ask[rl.LoaderStatus](ctx, w.peers, name, "status")
			if err != nil {
				return err
			}
			at, isFirst = &status.Position, true
			if err := w.keepChange(func(m *weights.Machine) { m.UnlockAt(action.Tag, *at) }); err != nil {
				return err
			}
		}
		unlocked, err := peer.Ask[bool](ctx, w.peers, name, "unlock_for_next_batch", *at)
		if err != nil {
			return err
		}
		if unlocked || !isFirst {
			return w.keepChange(func(m *weights.Machine) { m.Unlocked(action.Tag) })
		}
		at = nil // it began a batch between the two calls
	}
}

// keepChange changes the machine, and returns once that is durable.
func (w *Weights) keepChange(change func(*weights.Machine)) error {
	at, err := w.decide(func(m *weights.Machine) []weights.Action { change(m); return nil }, nil)
	if err != nil {
		return err
	}
	return w.keep.Wait(at)
}

// copy copies a version, and tries again until all inference services have the newest one.
func (w *Weights) copy(ctx context.Context, action weights.Action) {
	err := w.copier.Copy(ctx, action.Tag, action.Version)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		w.ended(func(m *weights.Machine) []weights.Action { return m.Copied(action.Tag, action.Version) })
		return
	}
	w.log.Error("weight sync has failed; rollouts stay blocked", "model", action.Tag, "version", action.Version, "error", err)
	w.ended(func(m *weights.Machine) []weights.Action {
		return m.CopyFailed(action.Tag, action.Version, err.Error())
	})
	w.report(ctx, err)
	if sleep.For(ctx, longestWait/5) {
		w.ended(func(m *weights.Machine) []weights.Action {
			if m.Of(action.Tag).Failure == "" {
				return nil
			}
			return m.Sync(action.Tag)
		})
	}
}

// report has the activity tracker know of a copy that failed. One that does not answer does not hold the next copy up.
func (w *Weights) report(ctx context.Context, err error) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	report := map[string]any{"type": "SyncError", "message": err.Error(), "traceback": ""}
	_, problem := w.peers.Call(ctx, string(rl.ActivityTracker), "report_exception", string(rl.WeightSyncController), "weight sync", report, string(rl.SeverityWarning))
	if problem != nil {
		w.log.Warn("the failed weight sync could not be reported", "error", problem)
	}
}

// ended changes the machine after a copy. A journal that fails ends the process.
func (w *Weights) ended(change func(*weights.Machine) []weights.Action) {
	if _, err := w.decide(change, nil); err != nil {
		w.log.Error("the end of a copy of weights is not kept", "error", err)
	}
}
