package actors

import (
	"context"
	"slices"

	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// outputKey is that of an endpoint's metadata for the name with which a task of several
// actors begins the lines of one of them: "[counter] ".
const outputKey = "output"

// Output is where the output of an actor is.
type Output struct {
	JobID   string
	Attempt int // 0: all of them
	Task    int
	// Prefix is what the actor's lines begin with, "" where the task has no other actor.
	Prefix string
}

// Holds reports whether it is in the output of a task.
func (o *Output) Holds(jobID string, attempt, task int) bool {
	return o.JobID == jobID && (o.Attempt == 0 || o.Attempt == attempt) && o.Task == task
}

// Outputs are where the actors of a name write: the registered ones of all namespaces, and
// those that a job hosts by itself, whether it runs or has ended.
func Outputs(ctx context.Context, s store.Store, doc *state.Document, name string) ([]Output, error) {
	saved, err := registry.Load(ctx, s)
	if err != nil {
		return nil, err
	}
	return outputsOf(saved, doc, name), nil
}

// Names are those of the actors that jobs host by themselves, with repetitions.
func Names(doc *state.Document) []string {
	var names []string
	for _, job := range doc.Jobs {
		names = append(names, job.Spec.ActorNames()...)
	}
	return names
}

func outputsOf(endpoints []*registry.Endpoint, doc *state.Document, name string) []Output {
	type task struct {
		job           string
		attempt, task int
	}
	objects := map[task][]string{} // the first names of what each task hosts
	for _, e := range endpoints {
		at := task{e.JobID, e.Attempt, e.Task}
		if object := e.Metadata[outputKey]; !slices.Contains(objects[at], object) {
			objects[at] = append(objects[at], object)
		}
	}
	var found []Output
	for _, e := range endpoints {
		if e.Name != name {
			continue
		}
		o := Output{JobID: e.JobID, Attempt: e.Attempt, Task: e.Task}
		if object := e.Metadata[outputKey]; object != "" && len(objects[task{e.JobID, e.Attempt, e.Task}]) > 1 {
			o.Prefix = "[" + object + "] "
		}
		found = append(found, o)
	}
	for _, job := range doc.Jobs {
		if slices.Contains(job.Spec.ActorNames(), name) {
			found = append(found, Output{JobID: job.ID}) // the first task has these names
		}
	}
	return found
}
