package follow

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// locate notes where the actors write that the query is of. What one has written stays
// part of it when it is registered no more.
func (q *Query) locate(ctx context.Context, s store.Store, doc *state.Document) error {
	if q.Actor == "" {
		return nil
	}
	found, err := actors.Outputs(ctx, s, doc, q.Actor)
	if err != nil {
		return err
	}
	for _, o := range found {
		if !q.knows(o) {
			q.outputs = append(q.outputs, o)
		}
	}
	return nil
}

func (q *Query) knows(o actors.Output) bool {
	for i := range q.outputs {
		k := &q.outputs[i]
		if k.JobID == o.JobID && k.Attempt == o.Attempt && k.Task == o.Task {
			k.Prefix = o.Prefix // another actor may have joined it
			return true
		}
	}
	return false
}

// hosts reports whether a job has output that the query is of.
func (q *Query) hosts(j *state.Job) bool {
	if q.Actor == "" {
		return true
	}
	for i := range q.outputs {
		if q.outputs[i].JobID == j.ID {
			return true
		}
	}
	return false
}

// output is what of a task's output the query is of, false: nothing.
func (q *Query) output(j *state.Job, attempt, task int) (actors.Output, bool) {
	if q.Actor == "" {
		return actors.Output{}, true
	}
	for i := range q.outputs {
		if q.outputs[i].Holds(j.ID, attempt, task) {
			return q.outputs[i], true
		}
	}
	return actors.Output{}, false
}

// unknownActor is why there is no output of an actor.
func (q *Query) unknownActor(doc *state.Document) error {
	where := ""
	if len(q.Addrs) == 1 {
		where = fmt.Sprintf(" in %s", q.name())
	}
	if near := schema.Nearest(q.Actor, actors.Names(doc)); near != "" {
		return fmt.Errorf("no actor %q has written anything%s; did you mean %q?", q.Actor, where, near)
	}
	return fmt.Errorf("no actor %q has written anything%s; fray actor list shows the actors, and fray logs without --actor the output of all", q.Actor, where)
}
