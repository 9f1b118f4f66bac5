package metadata

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// hosts are the jobs of a document by the actors that they state that they host.
type hosts struct {
	mu     sync.Mutex
	doc    *state.Document
	byName map[actorName][]host
}

type actorName struct{ namespace, name string }

// host is a job that hosts an actor, or did.
type host struct {
	id      string
	job     *state.Job           // nil: it is there no more
	removed *state.RemovedActors // nil: it was not removed from the configuration
}

// of are the hosts of an actor. The index is made for each document that is asked for.
func (h *hosts) of(doc *state.Document, actor actorName) []host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doc != doc {
		h.doc, h.byName = doc, map[actorName][]host{}
		for _, j := range doc.Jobs {
			h.add(j.Spec.Namespace, j.Spec.ActorNames(), host{id: j.ID, job: j})
		}
		for _, j := range doc.Past {
			h.add(j.Spec.Namespace, j.Spec.ActorNames(), host{id: j.ID, job: j})
		}
		for id, r := range doc.RemovedActors {
			h.add(r.Namespace, r.Names, host{id: id, removed: &r})
		}
	}
	return h.byName[actor]
}

func (h *hosts) add(namespace string, names []string, one host) {
	for _, name := range names {
		key := actorName{namespace, name}
		h.byName[key] = append(h.byName[key], one)
	}
}

// fate is what is known of the future of an actor that is not registered.
type fate struct {
	// death is why it is dead: "" while a job may still host it, and where none is on record.
	death string
	// undecided: the run that hosted it is ending, and whether another follows is not known yet.
	undecided bool
}

// fateOf is the fate of the actor of a name by its hosts: it is dead once all of them have
// ended, or are to; the newest says why.
func fateOf(name string, hosts []host) fate {
	var last *host
	undecided := false
	for i := range hosts {
		h := &hosts[i]
		switch {
		case h.isOver():
		case isEnding(h.job):
			undecided = true
			continue
		default:
			return fate{}
		}
		if last == nil || h.compareEnds(last) > 0 {
			last = h
		}
	}
	if undecided || last == nil {
		return fate{undecided: undecided}
	}
	return fate{death: last.death(name)}
}

// isOver reports whether the job will not host the actor again.
func (h *host) isOver() bool {
	return h.job == nil || h.job.Status.Ended() || h.isStopping()
}

// isStopping reports whether the job, which a program launched, was asked to end.
func (h *host) isStopping() bool { return h.job.Launch != nil && h.job.Stop }

// isEnding reports whether the last attempt of a job is ending, so that it is not decided
// whether another follows.
func isEnding(j *state.Job) bool {
	last := j.Last()
	return last != nil && last.Outcome == "" &&
		(last.StopGeneration != 0 || slices.ContainsFunc(last.Tasks, func(t state.Task) bool { return t.State.Ended() }))
}

// compareEnds orders hosts that are over by when they ended; those that have not ended yet are last.
func (h *host) compareEnds(o *host) int {
	if a, b := h.end(), o.end(); a.IsZero() == b.IsZero() {
		return cmp.Or(a.Compare(b), cmp.Compare(h.id, o.id))
	} else if a.IsZero() {
		return 1
	}
	return -1
}

// end is when the host ended, zero if it has not ended yet.
func (h *host) end() time.Time {
	switch {
	case h.job == nil:
		return h.removed.At
	case !h.job.Status.Ended():
		return time.Time{}
	}
	return h.job.EndedAt
}

// death is why the actor is dead whose newest host this is.
func (h *host) death(name string) string {
	j := h.job
	switch {
	case j == nil:
		by := ""
		if h.removed.By != "" {
			by = " by apply of " + h.removed.By
		}
		return fmt.Sprintf("actor %q was removed from the configuration%s at %s", name, by, h.removed.At.UTC().Format(time.RFC3339))
	case !j.Status.Ended():
		return fmt.Sprintf("actor %q was deleted: job %s is being stopped by %s", name, j.ID, cmp.Or(j.StopBy, "request"))
	}
	switch j.Status {
	case schema.JobStopped:
		return fmt.Sprintf("actor %q was deleted: job %s was %s", name, j.ID, cmp.Or(j.Reason, "stopped"))
	case schema.JobSucceeded:
		return fmt.Sprintf("actor %q has ended: job %s exited with status 0", name, j.ID)
	case schema.JobFailed, schema.JobPending, schema.JobRunning, schema.JobScheduled:
	}
	return fmt.Sprintf("actor %q has failed for good: job %s: %s", name, j.ID, cmp.Or(madeNot(j), j.Reason, "no reason is known"))
}

// madeNot is what the constructor raised, "" if that is not why a job failed.
func madeNot(j *state.Job) string {
	last := j.Last()
	if last == nil {
		return ""
	}
	for i := range last.Tasks {
		if end := last.Tasks[i].Termination; end != nil && end.Cause == schema.TerminationActorUnmade && end.Type != "" {
			return fmt.Sprintf("its constructor raised %s: %s", end.Type, end.Message)
		}
	}
	return ""
}
