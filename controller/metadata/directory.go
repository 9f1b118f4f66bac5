package metadata

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// directory is the registry of one time of leading, with its lock, what it is
// pruned by, and how far it is saved.
type directory struct {
	ctx   context.Context // the lease's
	views access.Views
	epoch uint64
	jobs  jobs.Cache
	hosts hosts
	now   func() time.Time

	mu    sync.RWMutex
	reg   *registry.Registry
	byJob map[string]map[*registry.Watcher]struct{} // watchers that end with a job, by its id
	timer chan struct{}                             // holds one token when an earlier expiry may have come

	saving sync.Mutex
	saved  uint64        // version
	moved  chan struct{} // closed when saved or failed change
	failed error         // nothing is saved any more
	dirty  chan struct{} // holds one token while there is something to save
}

// Lead has the server answer as long as the lease holds, once it has taken over
// what was saved and the loop has stepped.
func (m *Server) Lead(lease access.Lease, views access.Views) { go m.run(lease, views) }

// run takes over what was saved, forgets what ended meanwhile, and then answers
// until the lease ends.
func (m *Server) run(lease access.Lease, views access.Views) {
	ctx := lease.Context()
	saver := registry.NewSaver(m.store, lease.Epoch())
	found, err := m.takeOver(ctx, saver)
	if err != nil {
		return // the lease has ended, or soon does
	}
	dir := &directory{
		ctx: ctx, views: views, epoch: lease.Epoch(), now: m.now, reg: registry.New(found, m.now()),
		byJob: map[string]map[*registry.Watcher]struct{}{}, timer: make(chan struct{}, 1), moved: make(chan struct{}), dirty: make(chan struct{}, 1),
	}
	if dir.firstView() != nil {
		return
	}
	m.directory.Store(dir)
	defer m.directory.CompareAndSwap(dir, nil)
	var parts sync.WaitGroup
	parts.Go(dir.prunes)
	parts.Go(dir.expires)
	parts.Go(func() {
		if err := dir.saves(saver, m.store.WriteInterval()); err != nil {
			m.log.Error("endpoints are not saved any more", "error", err.Error())
		}
	})
	parts.Wait()
}

// takeOver reads what the last leader saved, however long that takes.
func (m *Server) takeOver(ctx context.Context, saver *registry.Saver) ([]*registry.Endpoint, error) {
	for failures := 0; ; {
		found, err := saver.Take(ctx)
		switch {
		case err == nil:
			return found, nil
		case ctx.Err() != nil || errors.Is(err, registry.ErrFenced):
			return nil, err
		}
		failures++
		m.log.Warn("cannot read the endpoints", "error", err.Error(), "next try in", access.StoreBackoff(failures).String())
		sleep.For(ctx, access.StoreBackoff(failures))
	}
}

// fate is what is known of the future of the actor of a name, or of the one that a job hosted.
func (d *directory) fate(namespace, name, job string) fate {
	v := d.view()
	if v == nil {
		return fate{undecided: true}
	}
	hosts := d.hosts.of(v.Doc, actorName{namespace, name})
	if job == "" {
		return fateOf(name, hosts)
	}
	return fateOf(name, slices.DeleteFunc(slices.Clone(hosts), func(h host) bool { return h.id != job }))
}

// view is what the loop last saw under this lease, nil before that.
func (d *directory) view() *access.View {
	if v := d.views.View(); v != nil && v.Lease.Epoch == d.epoch {
		return v
	}
	return nil
}

// firstView waits for the loop's first step, and prunes by its view.
func (d *directory) firstView() error {
	for {
		changed := d.views.Changed()
		if d.view() != nil {
			d.prune()
			return nil
		}
		select {
		case <-changed:
		case <-d.ctx.Done():
			return d.ctx.Err()
		}
	}
}

// prunes forgets what has ended whenever the loop has seen something new.
func (d *directory) prunes() {
	for {
		changed := d.views.Changed()
		d.prune()
		select {
		case <-changed:
		case <-d.ctx.Done():
			return
		}
	}
}

func (d *directory) prune() {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.view()
	if v == nil {
		return
	}
	table := d.jobs.Of(v.Doc)
	d.changedLocked(d.reg.Prune(func(e *registry.Endpoint) bool { return ended(table.ByID(e.JobID), e.Attempt, e.Task) == "" }))
	for id, watchers := range d.byJob {
		if err := overError(table.ByID(id)); err != nil {
			for w := range watchers {
				w.Fail(err)
			}
		}
	}
}

// ended is why an endpoint of a task of an attempt is gone, "" while it lives.
// An attempt that the loop has not seen yet lives.
func ended(j *state.Job, attempt, task int) string {
	last := jobs.Last(j)
	switch {
	case j == nil:
		return "the job is not there any more"
	case last == nil || last.Number < attempt:
		return ""
	case last.Number > attempt:
		return fmt.Sprintf("attempt %d has ended, attempt %d runs", attempt, last.Number)
	case last.Outcome != "":
		return fmt.Sprintf("attempt %d has ended: %s", attempt, last.Outcome)
	case last.StopGeneration != 0:
		return fmt.Sprintf("attempt %d is being ended", attempt)
	case task < len(last.Tasks) && last.Tasks[task].State.Ended():
		return fmt.Sprintf("task %d has ended: %s", task, last.Tasks[task].State)
	}
	return ""
}

// overError ends the watches of the actors of a job, nil while it may have some.
func overError(j *state.Job) error {
	switch {
	case j == nil:
		return status.Error(codes.FailedPrecondition, "the job is not there any more")
	case j.Status.Ended():
		text := fmt.Sprintf("job %s has ended: %s", j.ID, j.Status)
		if j.Reason != "" {
			text += ": " + j.Reason
		}
		return status.Error(codes.FailedPrecondition, text)
	}
	return nil
}

// register makes an endpoint known, and returns the version to wait for.
func (d *directory) register(in registry.Endpoint) (string, uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.view() // not older than what was pruned by
	if v == nil {
		return "", 0, status.Error(codes.Unavailable, access.ErrNotLeading.Error())
	}
	j := d.jobs.Of(v.Doc).ByID(in.JobID)
	if err := admit(&in, j); err != nil {
		return "", 0, err
	}
	e, change, err := d.reg.Register(in, newActorID(), d.now())
	switch {
	case errors.Is(err, registry.ErrNameTaken):
		return "", 0, status.Errorf(codes.AlreadyExists, "name: %v", err)
	case errors.Is(err, registry.ErrNotOwn):
		return "", 0, status.Errorf(codes.PermissionDenied, "actor_id: %v", err)
	case errors.Is(err, registry.ErrTooMany):
		return "", 0, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		return "", 0, badrequest.Fields(map[string]string{"actor_id": err.Error()})
	}
	d.changedLocked(change)
	if !e.Expires.IsZero() && e.Expires.Equal(d.reg.NextExpiry()) {
		nudge(d.timer)
	}
	return e.ID, d.reg.Version(), nil
}

// admit completes a registration by its job, or is why that has none.
func admit(in *registry.Endpoint, j *state.Job) error {
	switch {
	case in.JobID == "":
		return badrequest.Fields(map[string]string{"job_id": "name one: a user's endpoint belongs to a job too, and lives as long as its task"})
	case j == nil:
		return status.Errorf(codes.NotFound, "job_id: no job %s", in.JobID)
	case in.Attempt == 0 && j.Last() == nil:
		return status.Errorf(codes.FailedPrecondition, "job %s has not started yet", in.JobID)
	case in.Attempt == 0:
		in.Attempt = j.Last().Number
	}
	if why := ended(j, in.Attempt, in.Task); why != "" {
		return status.Errorf(codes.FailedPrecondition, "job %s: %s", in.JobID, why)
	}
	if last := j.Last(); last != nil && last.Number == in.Attempt && in.Task >= len(last.Tasks) {
		return badrequest.Fields(map[string]string{"task": fmt.Sprintf("there is no task %d: the attempt has %d, from 0", in.Task, len(last.Tasks))})
	}
	in.Namespace = j.Spec.Namespace
	return nil
}

func (d *directory) unregister(id, job string) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change, err := d.reg.Unregister(id, job)
	d.changedLocked(change)
	return d.reg.Version(), err
}

// changedLocked notifies watchers and has the change saved.
func (d *directory) changedLocked(change registry.Delta) {
	if change.Empty() {
		return
	}
	d.reg.Publish(change)
	nudge(d.dirty)
}

// watch adds a watcher; it is told of everything from now on.
func (d *directory) watch(w *registry.Watcher) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.Job != "" {
		var j *state.Job
		if v := d.view(); v != nil {
			j = d.jobs.Of(v.Doc).ByID(w.Job)
		}
		if j == nil || j.Spec.Namespace != w.Namespace {
			return status.Errorf(codes.NotFound, "job_id: no job %s in namespace %q", w.Job, w.Namespace)
		}
		if err := overError(j); err != nil {
			return err
		}
		if d.byJob[w.Job] == nil {
			d.byJob[w.Job] = map[*registry.Watcher]struct{}{}
		}
		d.byJob[w.Job][w] = struct{}{}
	}
	d.reg.Watch(w)
	return nil
}

func (d *directory) unwatch(w *registry.Watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reg.Unwatch(w)
	delete(d.byJob[w.Job], w)
	if len(d.byJob[w.Job]) == 0 {
		delete(d.byJob, w.Job)
	}
}

// take is what a watcher is to be sent.
func (d *directory) take(w *registry.Watcher) (*clusterapi.WatchResponse, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return w.Take(func() []*registry.Endpoint { return d.reg.Seen(w) })
}

// expires forgets what was not renewed.
func (d *directory) expires() {
	for {
		d.mu.Lock()
		d.changedLocked(d.reg.Expire(d.now()))
		next := d.reg.NextExpiry()
		d.mu.Unlock()
		if next.IsZero() {
			next = d.now().Add(time.Hour)
		}
		timer := time.NewTimer(next.Sub(d.now()))
		select {
		case <-timer.C:
		case <-d.timer:
		case <-d.ctx.Done():
		}
		timer.Stop()
		if d.ctx.Err() != nil {
			return
		}
	}
}

// nudge puts a token into a channel that holds one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// saves writes what has changed, many changes at once, until the lease ends or
// another controller has written.
func (d *directory) saves(saver *registry.Saver, interval time.Duration) error {
	failures := 0
	for {
		select {
		case <-d.dirty:
		case <-d.ctx.Done():
			return nil
		}
		d.mu.RLock()
		all, version := d.reg.All(), d.reg.Version()
		d.mu.RUnlock()
		err := saver.Save(d.ctx, all)
		switch {
		case err == nil:
			failures = 0
			d.settle(version, nil)
			sleep.For(d.ctx, interval)
			continue
		case errors.Is(err, registry.ErrFenced):
			d.settle(0, err)
			return err
		case d.ctx.Err() != nil:
			return nil
		}
		failures++
		nudge(d.dirty)
		sleep.For(d.ctx, max(interval, min(access.StoreBackoff(failures), mostSavePause)))
	}
}

// mostSavePause bounds the pause after a write that failed: callers wait.
const mostSavePause = 2 * time.Second

func (d *directory) settle(version uint64, failed error) {
	d.saving.Lock()
	defer d.saving.Unlock()
	d.saved, d.failed = max(d.saved, version), failed
	close(d.moved)
	d.moved = make(chan struct{})
}

// waitSaved returns once a version is in the store.
func (d *directory) waitSaved(ctx context.Context, version uint64) error {
	for {
		d.saving.Lock()
		saved, failed, moved := d.saved, d.failed, d.moved
		d.saving.Unlock()
		switch {
		case saved >= version:
			return nil
		case failed != nil:
			return status.Error(codes.Unavailable, failed.Error())
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-d.ctx.Done():
			return status.Error(codes.Unavailable, access.ErrNotLeading.Error())
		}
	}
}
