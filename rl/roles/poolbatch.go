package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/optional"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/sleep"
)

// GetBatch gives a batch, or nil if none is ready. Its options are batch_size, model_tag, consumer and wait, in this order.
// With a consumer the batch stays until Ack, and the same consumer gets it again until then. Wait is for how many seconds to wait
// for a batch.
func (p *Pool) GetBatch(ctx context.Context, options ...any) (*rl.Batch, error) {
	size, err := optional.Arguments(options).Number(0, "batch_size")
	if err != nil {
		return nil, err
	}
	tag, err := optional.Arguments(options).Text(1, "model_tag")
	if err != nil {
		return nil, err
	}
	consumer, err := optional.Arguments(options).Text(2, "consumer")
	if err != nil {
		return nil, err
	}
	wait, err := optional.Arguments(options).Seconds(3, "wait")
	if err != nil {
		return nil, err
	}
	return p.await(ctx, trajectory.Query{BatchSize: size, Tag: tag, Consumer: consumer}, wait)
}

// GetBatchAny is GetBatch of any model. Its options are batch_size and consumer.
func (p *Pool) GetBatchAny(ctx context.Context, options ...any) (*rl.Batch, error) {
	size, err := optional.Arguments(options).Number(0, "batch_size")
	if err != nil {
		return nil, err
	}
	consumer, err := optional.Arguments(options).Text(1, "consumer")
	if err != nil {
		return nil, err
	}
	return p.take(ctx, trajectory.Query{BatchSize: size, Consumer: consumer})
}

// take finds a batch that weight sync counts, and gives it.
func (p *Pool) take(ctx context.Context, q trajectory.Query) (*rl.Batch, error) {
	select {
	case p.taking <- struct{}{}:
		defer func() { <-p.taking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	acknowledged := q.Consumer == ""
	if acknowledged {
		q.Consumer = anonymous
	}
	for {
		answer, at, err := p.find(ctx, q)
		if err == nil {
			err = p.record.Wait(at)
		}
		if err != nil || answer.Batch == nil {
			return nil, err
		}
		if !answer.Notified {
			counted, err := p.notify(ctx, answer)
			if err != nil {
				return nil, err
			}
			if !counted {
				continue
			}
		}
		if acknowledged {
			if err := p.change(poolCommand{Op: opAck, ID: answer.Batch.ID}); err != nil {
				return nil, err
			}
		}
		return answer.Batch, nil
	}
}

// notify has weight sync count a batch, and reports whether it does: trajectories may be too old by now. After a crash that
// loses the record of it, weight sync is asked about the same batch again.
func (p *Pool) notify(ctx context.Context, answer trajectory.Answer) (counted bool, err error) {
	b := answer.Batch
	tag, _ := b.Metadata["model_tag"].(string)
	verdict, err := p.weights.BatchReady(ctx, tag, b.ID, answer.Oldest)
	if err != nil {
		return false, fmt.Errorf("notify weight_sync_controller of batch %s: %w", b.ID, err)
	}
	if !verdict.Counted {
		p.log.Info("trajectories are too old to be trained on, and are rolled out again", "batch", b.ID, "model", tag, "version", verdict.Floor)
		_, err := p.begin(poolCommand{Op: opReject, ID: b.ID, Number: verdict.Floor})
		return false, err
	}
	if _, err := p.begin(poolCommand{Op: opNotified, ID: b.ID}); err != nil {
		return false, err
	}
	_, err = p.begin(poolCommand{Op: opFloor, ID: tag, Number: verdict.Floor})
	return true, err
}

// Tend has the loader give the tasks again whose trajectories are too old, until ctx ends.
func (p *Pool) Tend(ctx context.Context) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := p.returnTasks(ctx)
		if err == nil {
			wait = firstWait
			select {
			case <-p.evicted:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		p.log.Warn("the pool waits for the data loader", "error", err)
		sleep.For(ctx, wait)
	}
}

// returnTasks has the loader give tasks again. Until it has them the pool is not empty, and does not take the loader for
// quiet.
func (p *Pool) returnTasks(ctx context.Context) error {
	p.mu.Lock()
	tasks, epoch, at := p.machine.Evicted(), p.machine.Epoch(), p.record.Last
	p.mu.Unlock()
	if len(tasks) == 0 {
		return nil
	}
	if err := p.record.Wait(at); err != nil {
		return err
	}
	if p.tasks == nil {
		return errors.New("trajectories are too old, and the pool has no loader to give their tasks again")
	}
	lost, err := p.tasks.RollOutAgain(ctx, p.name, epoch, tasks)
	if err != nil {
		return fmt.Errorf("have %d tasks rolled out again: %w", len(tasks), err)
	}
	if len(lost) > 0 {
		p.log.Error("the data loader does not have these tasks any more, and their trajectories are too old: they are left out", "tasks", lost)
	}
	return p.change(poolCommand{Op: opReturned, Number: tasks[len(tasks)-1].Number})
}

// find takes a batch out of the machine. Whether the loader is quiet counts only if nothing was put while it was asked:
// then all that was loaded is here.
func (p *Pool) find(ctx context.Context, q trajectory.Query) (trajectory.Answer, journal.Position, error) {
	for {
		p.mu.Lock()
		answer, err := p.takeNow(q)
		puts, at := p.puts, p.record.Last
		mayAsk := err == nil && answer.Batch == nil && p.machine.Status(q.Tag).Samples > 0
		p.mu.Unlock()
		if !mayAsk {
			return answer, at, err
		}
		status, err := p.loader.Status(ctx)
		if err != nil {
			return trajectory.Answer{}, 0, fmt.Errorf("read the data loader's status: %w", err)
		}
		if !status.Quiet() {
			return trajectory.Answer{}, at, nil
		}
		quiet := q
		quiet.Quiet, quiet.Finished = true, status.Finished
		p.mu.Lock()
		if p.puts != puts {
			p.mu.Unlock()
			continue
		}
		answer, err = p.takeNow(quiet)
		at = p.record.Last
		p.mu.Unlock()
		return answer, at, err
	}
}

// takeNow records what the machine has given. Its query can always be encoded.
func (p *Pool) takeNow(q trajectory.Query) (trajectory.Answer, error) {
	q.Now = p.now()
	answer, err := p.machine.Take(q)
	if !answer.Changed {
		return answer, err
	}
	p.roomier()
	record, failed := p.encode(poolCommand{Op: opTake, Query: &q}, nil)
	if failed == nil {
		_, failed = p.append(record)
	}
	if failed != nil {
		return answer, failed
	}
	return answer, err
}

// ignoreFields drops a FieldsError, which the caller of the first Take got.
func ignoreFields(err error) error {
	if _, ok := errors.AsType[*trajectory.FieldsError](err); ok {
		return nil
	}
	return err
}
