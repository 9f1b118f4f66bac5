package loop

import (
	"context"
	"sync"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// notifier is what tells receivers under one lease; the zero notifier tells nothing.
type notifier struct{ keeper *notices.Keeper }

// notices begins to tell receivers what happens, until the function that it returns is called.
func (cfg Config) notices(ctx context.Context, lease *store.Held) (notifier, func()) {
	if cfg.Notices == nil || cfg.Observe {
		return notifier{}, func() {}
	}
	at := lease.Lease()
	with := *cfg.Notices
	with.Store, with.Epoch, with.Valid, with.Log = cfg.Store, lease.Epoch(), lease.Valid, cfg.Log
	with.Leader = notice.Leader{Host: at.Host, PID: at.PID, Command: cfg.Command}
	keeper := notices.Open(ctx, with)
	ctx, cancel := context.WithCancel(ctx)
	var deliveries sync.WaitGroup
	deliveries.Go(func() { keeper.Deliver(ctx) })
	return notifier{keeper}, func() { cancel(); deliveries.Wait() }
}

// decider is what the stepper decides and keeps notices with, nil for none.
func (n notifier) decider() apply.Notices {
	if n.keeper == nil {
		return nil
	}
	return n.keeper
}

// events are what is to be kept of deliveries.
func (n notifier) events() []state.Event {
	if n.keeper == nil {
		return nil
	}
	return n.keeper.Events()
}
