// Package jobs finds the jobs of a document by their ids, names and addresses, for
// the callers of the cluster API: a job may know of the jobs of its own namespace,
// a user of all. It neither reads nor changes the state itself.
//
// Start with [Table].
package jobs

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Table finds the jobs of one document, those included whose address another job
// has taken since ("past"). It may be used concurrently.
type Table struct {
	doc    *state.Document
	byID   map[string]*state.Job
	byName func() map[jobName][]*state.Job // those that are not past; made once
}

type jobName struct{ namespace, name string }

// NewTable makes the table of a document, which must not change afterwards.
func NewTable(doc *state.Document) *Table {
	t := &Table{doc: doc, byID: make(map[string]*state.Job, len(doc.Jobs)+len(doc.Past))}
	maps.Copy(t.byID, doc.Past)
	for _, j := range doc.Jobs {
		t.byID[j.ID] = j
	}
	t.byName = sync.OnceValue(func() map[jobName][]*state.Job {
		byName := make(map[jobName][]*state.Job, len(doc.Jobs))
		for _, j := range doc.Jobs {
			name := jobName{j.Spec.Namespace, NameOf(j)}
			byName[name] = append(byName[name], j)
		}
		return byName
	})
	return t
}

// Cache keeps the table of the document that it was last asked for. The zero Cache
// is empty.
type Cache struct {
	mu    sync.Mutex
	table *Table
}

// Of is the table of a document.
func (c *Cache) Of(doc *state.Document) *Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.table == nil || c.table.doc != doc {
		c.table = NewTable(doc)
	}
	return c.table
}

// ByID is the job of an id, nil if there is none.
func (t *Table) ByID(id string) *state.Job { return t.byID[id] }

// All are all jobs, in no order.
func (t *Table) All() iter.Seq[*state.Job] { return maps.Values(t.byID) }

// Find returns the job of an id, of a name in the caller's namespace, or of an
// address, if the caller may know of it. Its error is a gRPC status.
func (t *Table) Find(who caller.Caller, text string) (*state.Job, error) {
	j := t.byID[text]
	if j == nil {
		var err error
		if j, err = t.named(who, text); err != nil {
			return nil, err
		}
	}
	if j == nil {
		return nil, t.notFound(who, text)
	}
	if who.Kind == caller.Job && j.Spec.Namespace != who.Namespace {
		return nil, status.Errorf(codes.PermissionDenied, "job %s is in namespace %s, the caller in %s", text, j.Spec.Namespace, who.Namespace)
	}
	return j, nil
}

// named finds a job by its name or its address; nil if there is none.
func (t *Table) named(who caller.Caller, text string) (*state.Job, error) {
	if addr, err := schema.ParseAddress(text); err == nil && t.doc.Jobs[addr] != nil {
		return t.doc.Jobs[addr], nil
	}
	var found []*state.Job
	if who.Kind == caller.Job {
		found = t.byName()[jobName{who.Namespace, text}]
	} else {
		for name, jobs := range t.byName() {
			if name.name == text || name.namespace+"/"+name.name == text {
				found = append(found, jobs...)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	var addrs []string
	for _, j := range found {
		addrs = append(addrs, j.Spec.Addr.String())
	}
	slices.Sort(addrs)
	return nil, status.Errorf(codes.InvalidArgument, "several jobs are called %s: name one by its id or address: %s", text, strings.Join(addrs, ", "))
}

// notFound suggests a job that the caller may have meant.
func (t *Table) notFound(who caller.Caller, text string) error {
	if text == "" {
		return status.Error(codes.InvalidArgument, "job_id is empty: give the id of a job, or its name")
	}
	var candidates []string
	for id, j := range t.byID {
		if who.Kind != caller.Job || j.Spec.Namespace == who.Namespace {
			candidates = append(candidates, id, NameOf(j))
		}
	}
	return badrequest.NotFound("job", text, candidates)
}

// MayEnd rejects callers that are neither users nor ancestors of a job: a job may
// end itself and what it launched.
func (t *Table) MayEnd(who caller.Caller, j *state.Job) error {
	if who.Kind != caller.Job {
		return nil
	}
	for at := j; at != nil; at = t.byID[at.Launch.Parent] {
		if at.ID == who.JobID {
			return nil
		}
		if at.Launch == nil {
			break
		}
	}
	return status.Errorf(codes.PermissionDenied, "job %s may end itself and what it launched, and %s is neither", who.JobID, j.ID)
}

// NameOf is the name of a job for people: the one that its launch requested, or the
// one in the files.
func NameOf(j *state.Job) string {
	if j.Launch != nil {
		return j.Launch.Name
	}
	return j.Spec.Addr.Name + j.Spec.Addr.Key.String()
}

// Last is the last attempt of a job, which may be nil or have none.
func Last(j *state.Job) *state.Attempt {
	if j == nil {
		return nil
	}
	return j.Last()
}

// Removed is a job that is no longer on record, as it was last seen. If it had not
// ended then, a plan removed it.
func Removed(j *state.Job) *state.Job {
	if j.Status.Ended() {
		return j
	}
	removed := *j
	removed.Status, removed.Reason = schema.JobStopped, "removed from the stack"
	return &removed
}

// Namespace is the namespace of a request that names one, "" if it names none. Jobs
// have only their own. path is the field of the request.
func Namespace(who caller.Caller, asked, path string) (string, error) {
	if who.Kind == caller.Job {
		if asked != "" && asked != who.Namespace {
			return "", status.Errorf(codes.PermissionDenied, "%s: job %s is in namespace %s and may not use %s", path, who.JobID, who.Namespace, asked)
		}
		return who.Namespace, nil
	}
	if asked != "" && !validNamespace(asked) {
		return "", badrequest.Of(request.Mistake{Path: path, Summary: "Invalid name", Detail: fmt.Sprintf(
			"%q cannot name a namespace: a name is a letter or underscore, then letters, digits, underscores and hyphens, at most 63 in all.", asked)})
	}
	return asked, nil
}

func validNamespace(scoped string) bool {
	addr := schema.ScopedAddress(schema.KindNamespace, scoped)
	parsed, err := schema.ParseAddress(addr.String())
	return err == nil && parsed == addr
}
