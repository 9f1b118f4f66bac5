package roles

import (
	"context"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/sleep"
)

// quietPause is how long a pool waits for more where the loader is quiet and what there is makes no batch.
const quietPause = 50 * time.Millisecond

// quietWait is for how many seconds the loader is asked at once.
const quietWait = 10.0

// wake is why a batch may be there.
type wake int

const (
	over        wake = iota // none may: the caller has waited long enough
	morePut                 // enough trajectories were put
	stateIsNew              // a batch was released or acknowledged, or trajectories were flushed
	loaderQuiet             // nothing is rolled out any more
)

// await takes a batch as soon as there is one, within so many seconds.
func (p *Pool) await(ctx context.Context, q trajectory.Query, seconds float64) (*rl.Batch, error) {
	waiting, cancel := within(ctx, seconds)
	defer cancel()
	why := over
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		batch, err := p.take(ctx, q)
		if err != nil || batch != nil || seconds <= 0 {
			return batch, err
		}
		pause := time.Duration(0)
		if why == loaderQuiet {
			pause = quietPause // it is quiet still, and would answer at once
		}
		if why = p.wakes(waiting, q, changed, pause); why == over {
			return nil, nil
		}
	}
}

// wakes waits until there may be a batch. The loader is asked after a pause.
func (p *Pool) wakes(ctx context.Context, q trajectory.Query, changed <-chan struct{}, pause time.Duration) wake {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var quiet chan struct{}
	for {
		p.mu.Lock()
		stored, isReached, samples := p.stored.changed, p.machine.Reaches(q), p.machine.Status(q.Tag).Samples
		p.mu.Unlock()
		if isReached && pause == 0 {
			return morePut
		}
		if samples > 0 && quiet == nil {
			quiet = make(chan struct{})
			go func() {
				defer close(quiet)
				p.untilQuiet(ctx, pause)
			}()
		}
		select {
		case <-stored:
		case <-changed:
			return stateIsNew
		case <-quiet:
			if ctx.Err() != nil {
				return over
			}
			return loaderQuiet
		case <-ctx.Done():
			return over
		}
	}
}

// untilQuiet returns once the loader is quiet, or ctx ends.
func (p *Pool) untilQuiet(ctx context.Context, pause time.Duration) {
	for sleep.For(ctx, pause) {
		status, err := p.loader.WaitQuiet(ctx, quietWait)
		if err == nil && status.Quiet() {
			return
		}
		pause = 0
		if err != nil { // it is being restarted
			pause = firstWait
		}
	}
}
