package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
)

// putting is a trajectory on its way into the pool, with the record of that.
type putting struct {
	header  rl.Header
	payload []byte
	now     time.Time
	record  []byte
}

// putResult is an outcome that stands once the journal is written so far, or what to wait for first.
type putResult struct {
	outcome rl.Outcome
	at      journal.Position
	wait    <-chan struct{}
}

// PutTrajectory stores a trajectory. It waits while the pool is full, and answers once the trajectory is in the journal.
func (p *Pool) PutTrajectory(ctx context.Context, header rl.Header, payload []byte) (rl.Outcome, error) {
	outcome, at, err := p.place(ctx, header, payload)
	if err != nil {
		return "", err
	}
	return outcome, p.record.Wait(at)
}

// PutAnswer is what became of one of several trajectories.
type PutAnswer struct {
	Outcome rl.Outcome `json:"outcome,omitempty"`
	Error   string     `json:"error,omitempty"` // why there is no outcome; "": there is one
}

// PutTrajectories stores trajectories as PutTrajectory does each, and answers once all of them are in the journal.
func (p *Pool) PutTrajectories(ctx context.Context, headers []rl.Header, payloads [][]byte) ([]PutAnswer, error) {
	if len(headers) != len(payloads) {
		return nil, fmt.Errorf("put_trajectories: %d headers and %d payloads: want one of each for every trajectory", len(headers), len(payloads))
	}
	answers := make([]PutAnswer, len(headers))
	var last journal.Position
	for i, header := range headers {
		outcome, at, err := p.place(ctx, header, payloads[i])
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		last = max(last, at)
		answers[i] = PutAnswer{Outcome: outcome}
		if err != nil {
			answers[i].Error = err.Error()
		}
	}
	return answers, p.record.Wait(last)
}

// place puts a trajectory into the machine as soon as there is room, and returns what makes the outcome durable.
func (p *Pool) place(ctx context.Context, header rl.Header, payload []byte) (rl.Outcome, journal.Position, error) {
	one := putting{header: header, payload: payload, now: p.now()}
	var err error
	if one.record, err = p.encode(poolCommand{Op: opPut, Header: &header, Now: one.now}, payload); err != nil {
		return "", 0, err // nothing is stored that the journal does not have
	}
	for {
		done, err := p.put(one)
		if err != nil || done.wait == nil {
			return done.outcome, done.at, err
		}
		select {
		case <-ctx.Done():
			return "", 0, context.Cause(ctx)
		case <-done.wait:
		}
	}
}

func (p *Pool) put(one putting) (putResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	verdict, err := p.machine.Admit(one.header, one.payload)
	switch {
	case err != nil:
		return putResult{}, err
	case verdict.Wait:
		return putResult{wait: p.changed}, nil
	case verdict.Outcome != "":
		if verdict.Outcome == rl.Fail {
			p.log.Warn("a trajectory is rejected", "task", one.header.TaskID, "reason", verdict.Reason)
		}
		return putResult{outcome: verdict.Outcome, at: p.record.Last}, nil
	}
	p.machine.Store(one.header, one.payload, one.now)
	p.puts++
	p.stored.notify()
	at, err := p.append(one.record)
	return putResult{outcome: rl.Success, at: at}, err
}
