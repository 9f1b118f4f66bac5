package metadata

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// hosts are the jobs of a document by the actors that they say they host.
type hosts struct {
	mu     sync.Mutex
	doc    *state.Document
	byName map[actorName][]*state.Job
}

type actorName struct{ namespace, name string }

// of are the jobs of an actor. The index is made for each document that is asked for.
func (h *hosts) of(doc *state.Document, actor actorName) []*state.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doc != doc {
		h.doc, h.byName = doc, map[actorName][]*state.Job{}
		for _, j := range doc.Jobs {
			h.add(j)
		}
		for _, j := range doc.Past {
			h.add(j)
		}
	}
	return h.byName[actor]
}

func (h *hosts) add(j *state.Job) {
	for _, name := range registry.NamesOf(j.Spec) {
		key := actorName{j.Spec.Namespace, name}
		h.byName[key] = append(h.byName[key], j)
	}
}

// death is why the actor of a name is dead: the newest of the jobs that host it has
// ended, as all have. It is "" while one may still host it, and where none is on record.
func death(name string, hosts []*state.Job) string {
	var last *state.Job
	for _, j := range hosts {
		if !j.Status.Ended() {
			return ""
		}
		if last == nil || cmp.Or(j.EndedAt.Compare(last.EndedAt), cmp.Compare(j.ID, last.ID)) > 0 {
			last = j
		}
	}
	if last == nil {
		return ""
	}
	switch last.Status {
	case schema.JobStopped:
		return fmt.Sprintf("actor %q was deleted: job %s was %s", name, last.ID, cmp.Or(last.Reason, "stopped"))
	case schema.JobSucceeded:
		return fmt.Sprintf("actor %q has ended: job %s exited with status 0", name, last.ID)
	case schema.JobFailed, schema.JobPending, schema.JobRunning:
	}
	return fmt.Sprintf("actor %q has failed for good: job %s: %s", name, last.ID, cmp.Or(madeNot(last), last.Reason, "no reason is known"))
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
