package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/rl/trainbatch"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/rl/weights"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// event is what happens at a time; those of one time happen in the order in which they were planned.
type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// world is a run: machines, workers and what befalls them.
type world struct {
	t    *testing.T
	draw *rand.Rand

	processors int
	processing time.Duration
	busy       map[int]bool // processors
	now        time.Time
	queue      events
	order      int

	loading loader.Config
	pooling trajectory.Config
	syncing weights.Config
	loader  *loader.Loader
	pool    *trajectory.Pool
	batches *trainbatch.Pool
	weights *weights.Machine
	machine *run.Machine

	lives                        [workers]int // of workers: a new one after each preemption
	syncs                        int          // lives of the weight sync controller
	serving                      int64        // the version of the inference services
	step                         int64
	training                     bool
	updates                      map[string]bool // batches that are in the model
	trained                      map[string]int  // tasks
	worst                        int64
	evicted                      int // tasks
	preempted, restarted, failed int
}

func newDraws(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 18)) }

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.queue, event{at: w.now.Add(d), order: w.order, do: do})
}

func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.draw.Int64N(int64(high-low)))
}

// limit is after how long without an update a run has stopped for good.
const limit = 2 * time.Hour

func (w *world) run() {
	for i := range workers {
		w.after(w.between(0, time.Minute), func() { w.next(i, w.lives[i]) })
	}
	w.every(time.Minute, w.preempt)
	w.every(time.Minute, func() { w.loader.PutBackAll(w.loader.Expired(w.now)) })
	w.every(20*time.Minute, w.restart)
	for i := range w.processors {
		w.every(2*time.Second, func() { w.process(i) })
	}
	w.every(3*time.Second, w.returnTasks)
	w.every(2*time.Second, w.train)
	w.every(10*time.Second, w.lead)
	last, moved := int64(0), begin
	for w.machine.State().Phase != run.Ended {
		next := heap.Pop(&w.queue).(event)
		w.now = next.at
		next.do()
		if w.step != last {
			last, moved = w.step, w.now
		}
		if w.now.Sub(moved) > limit {
			w.t.Fatalf("no update for %s after step %d: loader %+v, weights %+v, pool %+v, batches %v, controller %+v",
				limit, w.step, w.loader.Status(), w.weights.Of(rl.DefaultModel), w.pool.Status(rl.DefaultModel), w.batches.Sizes(), w.machine.State())
		}
	}
}

func (w *world) every(d time.Duration, do func()) {
	w.after(d, func() { do(); w.every(d, do) })
}

// next has a worker lease a task. A life that has ended does nothing any more.
func (w *world) next(i, life int) {
	if w.lives[i] != life {
		return
	}
	grant, ok := w.loader.Next(fmt.Sprint(i), fmt.Sprint(life), w.now)
	if !ok {
		w.after(w.between(time.Second, 10*time.Second), func() { w.next(i, life) })
		return
	}
	w.rollOut(i, life, grant)
}

func (w *world) rollOut(i, life int, grant loader.Grant) {
	if w.lives[i] != life {
		return
	}
	w.loader.Renew(fmt.Sprint(i), fmt.Sprint(life), w.now)
	if w.weights.RolloutStatus(rl.DefaultModel) == rl.Block {
		w.after(5*time.Second, func() { w.rollOut(i, life, grant) })
		return
	}
	version := w.serving
	w.after(w.between(30*time.Second, 5*time.Minute), func() { w.put(i, life, grant, version) })
}

// put gives a trajectory to the pool. Some workers die before they report the end of their task.
func (w *world) put(i, life int, grant loader.Grant, version int64) {
	if w.lives[i] != life {
		return
	}
	header := rl.Header{
		Keys: map[string]any{"group_id": grant.Entry.GroupID()}, TaskID: grant.Lease.TaskID, Lease: grant.Lease.ID, Epoch: grant.Lease.Epoch, Version: &version,
	}
	payload := []byte(grant.Lease.TaskID)
	verdict, err := w.pool.Admit(header, payload)
	if err != nil {
		w.t.Fatal(err)
	}
	switch verdict.Outcome {
	case rl.ReRollout:
		w.after(time.Second, func() { w.rollOut(i, life, grant) })
		return
	case rl.Fail:
		w.t.Fatalf("task %s: %s", grant.Lease.TaskID, verdict.Reason)
	case "":
		w.pool.Store(header, payload, w.now)
	case rl.Success:
	}
	if w.draw.IntN(500) == 0 {
		w.kill(i)
		return
	}
	w.loader.Complete(grant.Lease.ID)
	w.next(i, life)
}

func (w *world) preempt() { w.kill(w.draw.IntN(workers)) }

func (w *world) kill(i int) {
	w.preempted++
	w.lives[i]++
	life := w.lives[i]
	w.after(w.between(30*time.Second, 20*time.Minute), func() { w.next(i, life) })
}

// process makes a batch for training of one of trajectories. The processor may die on the way: the batch comes again.
func (w *world) process(i int) {
	if w.busy[i] {
		return
	}
	b := w.take(fmt.Sprintf("processor %d", i))
	if b == nil {
		return
	}
	w.busy[i] = true
	w.after(w.between(time.Second, w.processing), func() {
		w.busy[i] = false
		if w.draw.IntN(20) == 0 {
			return
		}
		var lines []byte
		for _, h := range b.Headers {
			lines = fmt.Appendf(lines, "%s %d\n", h.TaskID, *h.Version)
		}
		w.batches.Put(rl.TrainHeader{ID: "t-" + b.ID, BatchSize: len(b.Headers)}, lines)
		if w.draw.IntN(20) != 0 {
			w.pool.Ack(b.ID)
		}
	})
}

// take is a batch that weight sync counts, nil if there is none.
func (w *world) take(consumer string) *rl.Batch {
	status := w.loader.Status()
	answer, err := w.pool.Take(trajectory.Query{Consumer: consumer, Quiet: status.Quiet(), Finished: status.Finished, Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	b := answer.Batch
	if b == nil || answer.Notified {
		return b
	}
	if !w.weights.Takes(rl.DefaultModel, b.ID, answer.Oldest) {
		w.pool.Reject(b.ID, w.weights.Floor(rl.DefaultModel))
		return nil
	}
	w.carryOut(w.weights.BatchReady(rl.DefaultModel, b.ID))
	if w.draw.IntN(20) == 0 {
		return nil // the pool died before it noted that
	}
	w.pool.NoteNotified(b.ID)
	w.pool.SetFloor(rl.DefaultModel, w.weights.Floor(rl.DefaultModel))
	return b
}

// returnTasks has the loader give tasks again. The answer may be lost.
func (w *world) returnTasks() {
	tasks := w.pool.Evicted()
	if len(tasks) == 0 {
		return
	}
	if lost := w.loader.Again("pool", w.pool.Epoch(), tasks); len(lost) > 0 {
		w.t.Fatalf("the loader does not know %q", lost)
	}
	if w.draw.IntN(5) > 0 {
		w.evicted += len(tasks)
		w.pool.Returned(tasks[len(tasks)-1].Number)
	}
}

// train makes an update of a batch. The trainer may die after it: the service knows the batch when it comes again.
func (w *world) train() {
	if w.training {
		return
	}
	b, _ := w.batches.Get(rl.DefaultModel, "trainer")
	if b == nil {
		return
	}
	w.training = true
	w.after(w.between(10*time.Second, time.Minute), func() {
		w.training = false
		if !w.updates[b.ID] {
			w.updates[b.ID] = true
			w.step++
			w.count(string(b.Payload))
		}
		if w.draw.IntN(20) == 0 {
			return
		}
		w.carryOut(w.weights.Updated(rl.DefaultModel, "train_worker_0", b.ID))
		w.batches.Ack(b.ID)
	})
}

func (w *world) count(text string) {
	var task string
	var version int64
	for len(text) > 0 {
		n, err := fmt.Sscanf(text, "%s %d\n", &task, &version)
		if n != 2 || err != nil {
			w.t.Fatalf("payload %.40q: %v", text, err)
		}
		w.trained[task]++
		w.worst = max(w.worst, w.step-1-version)
		text = text[len(fmt.Sprintf("%s %d\n", task, version)):]
	}
}

// carryOut does what weight sync has decided. Copies take time, and some fail.
func (w *world) carryOut(actions []weights.Action) {
	for _, action := range actions {
		switch action.Verb {
		case weights.LockPools:
			w.pool.Lock(action.Tag)
		case weights.UnlockPools:
			w.pool.Unlock(action.Tag, action.Version, w.now)
		case weights.UnlockLoader:
			w.loader.Unlock()
			w.weights.Unlocked(action.Tag)
		case weights.Copy:
			w.copy(action, w.syncs)
		}
	}
}

func (w *world) copy(action weights.Action, life int) {
	w.after(w.between(time.Second, 20*time.Second), func() {
		if w.syncs != life {
			return
		}
		if w.draw.IntN(10) > 0 {
			w.serving = action.Version
			w.carryOut(w.weights.Copied(action.Tag, action.Version))
			return
		}
		w.failed++
		w.carryOut(w.weights.CopyFailed(action.Tag, action.Version, "a service is gone"))
		w.after(10*time.Second, func() {
			if w.syncs == life && w.weights.Of(action.Tag).Failure != "" {
				w.carryOut(w.weights.Sync(action.Tag))
			}
		})
	})
}
