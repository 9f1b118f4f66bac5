// Package actors lists the actors of a stack: the registered ones, as the store has
// them, those that running or waiting jobs are to host, and those that have failed for
// good. It registers nothing; package metadata does.
//
// Start with [List].
package actors

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Status is a closed set of where an actor is in its life.
type Status string

// The statuses of an actor.
const (
	Creating   Status = "CREATING"   // its first attempt has not registered yet
	Ready      Status = "READY"      // it is registered
	Restarting Status = "RESTARTING" // another attempt is on its way
	Stopping   Status = "STOPPING"   // its job is being stopped for good
	Failed     Status = "FAILED"     // its job has failed for good
)

// Variables is what the names of all variables of a host of actors begin with.
const Variables = "FRAY_ACTOR_"

// Actor is one incarnation of an actor, or one that is awaited.
type Actor struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	Status    Status            `json:"status"`
	Reason    string            `json:"reason,omitempty"`  // why it is not READY
	Address   string            `json:"address,omitempty"` // host:port
	ID        string            `json:"actor_id,omitempty"`
	Job       schema.Address    `json:"job"`
	JobID     string            `json:"job_id"`
	Attempt   int               `json:"attempt"`
	Task      int               `json:"task"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Since     time.Time         `json:"since,omitzero"` // registered
}

// List lists the actors of a stack by namespace and name: those that are
// registered, as the store has it, and those that jobs are to host.
func List(ctx context.Context, s store.Store, doc *state.Document) ([]Actor, error) {
	saved, err := registry.Load(ctx, s)
	if err != nil {
		return nil, err
	}
	return actorsOf(saved, doc), nil
}

func actorsOf(endpoints []*registry.Endpoint, doc *state.Document) []Actor {
	jobs := make(map[string]schema.Address, len(doc.Jobs))
	for addr, job := range doc.Jobs {
		jobs[job.ID] = addr
	}
	declared := make(map[schema.Address]bool, len(doc.Desired.Jobs))
	for i := range doc.Desired.Jobs {
		declared[doc.Desired.Jobs[i].Addr] = true
	}
	isStopping := func(addr schema.Address, job *state.Job) bool {
		return !job.Status.Ended() && (job.Stop || job.Launch == nil && !declared[addr])
	}
	var actors []Actor
	type key struct{ job, name string }
	registered := map[key]bool{}
	for _, e := range endpoints {
		addr, known := jobs[e.JobID]
		if job := doc.Jobs[addr]; !known || job.Status.Ended() || job.Attempt != e.Attempt {
			continue // no controller has led since its task ended
		}
		registered[key{e.JobID, e.Name}] = true
		one := Actor{
			Name: e.Name, Namespace: e.Namespace, Status: Ready, Address: e.Address, ID: e.ID,
			Job: addr, JobID: e.JobID, Attempt: e.Attempt, Task: e.Task, Metadata: e.Metadata, Since: e.At,
		}
		if job := doc.Jobs[addr]; isStopping(addr, job) {
			one.Status, one.Reason = Stopping, job.Reason
		}
		actors = append(actors, one)
	}
	alive := map[[2]string]bool{}
	for _, job := range doc.Jobs {
		for _, name := range job.Spec.ActorNames() {
			alive[[2]string{job.Spec.Namespace, name}] = alive[[2]string{job.Spec.Namespace, name}] || !job.Status.Ended()
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(doc.Jobs), schema.Address.Compare) {
		job := doc.Jobs[addr]
		if job.Status.Ended() && job.Status != schema.JobFailed {
			continue // it was deleted, or is done
		}
		for _, name := range job.Spec.ActorNames() {
			if registered[key{job.ID, name}] || job.Status.Ended() && alive[[2]string{job.Spec.Namespace, name}] {
				continue
			}
			actors = append(actors, Actor{
				Name: name, Namespace: job.Spec.Namespace, Status: awaited(job, isStopping(addr, job)), Reason: whyAwaited(job),
				Job: addr, JobID: job.ID, Attempt: job.Attempt,
			})
		}
	}
	slices.SortStableFunc(actors, func(a, b Actor) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), a.Since.Compare(b.Since))
	})
	return actors
}

// awaited is the status of an actor that is not registered.
func awaited(job *state.Job, stopping bool) Status {
	last := job.Last()
	switch {
	case job.Status.Ended():
		return Failed
	case stopping:
		return Stopping
	case job.Attempt > 1, last != nil && (last.StopGeneration != 0 || last.Outcome != ""):
		return Restarting
	}
	return Creating
}

// whyAwaited is why an actor is not registered, as far as that is known.
func whyAwaited(job *state.Job) string {
	if job.Ready {
		return "it serves; its name resolves seconds after fray watch starts"
	}
	if job.Reason == "" && job.Status.Ended() {
		return fmt.Sprintf("its job %s; it is not started again", job.Status)
	}
	return job.Reason
}
