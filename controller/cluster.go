package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// clusterConfig is what the Cluster service works with.
type clusterConfig struct {
	Desk  desk
	Store store.Store // where logs and uploads are
	// Hosts connects to the agent that serves a report's API; nil: logs come
	// from the store, and nothing is run on hosts. Closing it is the caller's.
	Hosts func(ctx context.Context, report *state.HostReport) (hostConn, error)
	Log   *slog.Logger
	// Sealer has the stack's key.
	Sealer schema.Sealer
}

// hostConn is a connection to a host's agent.
type hostConn interface {
	grpc.ClientConnInterface
	io.Closer
}

// clusterServer is the Cluster service: the life of jobs and reservations. It
// reads Views and hands changes to the desk; it remembers nothing itself.
type clusterServer struct {
	clusterapi.UnimplementedClusterServer

	clusterConfig

	mu    sync.Mutex
	table *jobTable // of the last view that was asked about
}

var _ clusterapi.ClusterServer = (*clusterServer)(nil)

func newCluster(cfg clusterConfig) *clusterServer { return &clusterServer{clusterConfig: cfg} }

// jobTable finds the jobs of one document.
type jobTable struct {
	doc    *state.Document
	byID   map[string]*state.Job
	byName map[jobName][]*state.Job // those that are not past
}

type jobName struct{ namespace, name string }

// jobs finds those of a view.
func (c *clusterServer) jobs(v *View) *jobTable {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.table == nil || c.table.doc != v.Doc {
		c.table = newJobTable(v.Doc)
	}
	return c.table
}

func newJobTable(doc *state.Document) *jobTable {
	x := &jobTable{doc: doc, byID: make(map[string]*state.Job, len(doc.Jobs)), byName: make(map[jobName][]*state.Job, len(doc.Jobs))}
	maps.Copy(x.byID, doc.Past)
	for _, j := range doc.Jobs {
		x.byID[j.ID] = j
		name := jobName{j.Spec.Namespace, nameOf(j)}
		x.byName[name] = append(x.byName[name], j)
	}
	return x
}

// jobOf finds a job that is not past by its id, nil if there is none.
func jobOf(doc *state.Document, id string) *state.Job {
	for _, j := range doc.Jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// nameOf is what people call a job: what was asked for, or its name in the files.
func nameOf(j *state.Job) string {
	if j.Launch != nil {
		return j.Launch.Name
	}
	return j.Spec.Addr.Name + j.Spec.Addr.Key.String()
}

// find returns the job of an id, of a name in the caller's namespace, or of an
// address, if the caller may know of it.
func (x *jobTable) find(who caller, text string) (*state.Job, error) {
	j := x.byID[text]
	if j == nil {
		var err error
		if j, err = x.named(who, text); err != nil {
			return nil, err
		}
	}
	if j == nil {
		return nil, x.unknown(who, text)
	}
	if who.Kind == callerJob && j.Spec.Namespace != who.Namespace {
		return nil, status.Errorf(codes.PermissionDenied, "job %s is in namespace %s, the caller in %s", text, j.Spec.Namespace, who.Namespace)
	}
	return j, nil
}

// named finds a job by its name or its address; nil if there is none.
func (x *jobTable) named(who caller, text string) (*state.Job, error) {
	if addr, err := schema.ParseAddress(text); err == nil && x.doc.Jobs[addr] != nil {
		return x.doc.Jobs[addr], nil
	}
	var found []*state.Job
	if who.Kind == callerJob {
		found = x.byName[jobName{who.Namespace, text}]
	} else {
		for name, jobs := range x.byName {
			if name.name == text || name.namespace+"/"+name.name == text {
				found = append(found, jobs...)
			}
		}
	}
	if len(found) < 2 {
		return first(found), nil
	}
	var addrs []string
	for _, j := range found {
		addrs = append(addrs, j.Spec.Addr.String())
	}
	slices.Sort(addrs)
	return nil, status.Errorf(codes.InvalidArgument, "several jobs are called %s: name one by its id or address: %s", text, strings.Join(addrs, ", "))
}

func first(jobs []*state.Job) *state.Job {
	if len(jobs) == 0 {
		return nil
	}
	return jobs[0]
}

// unknown says that there is no such job, and which one may be meant.
func (x *jobTable) unknown(who caller, text string) error {
	if text == "" {
		return status.Error(codes.InvalidArgument, "job_id is empty: give the id of a job, or its name")
	}
	var near []string
	for id, j := range x.byID {
		if who.Kind != callerJob || j.Spec.Namespace == who.Namespace {
			near = append(near, id, nameOf(j))
		}
	}
	return notFound("job", text, near)
}

// notFound names what may have been meant instead.
func notFound(kind, text string, candidates []string) error {
	if near := schema.Nearest(text, candidates); near != "" {
		return status.Errorf(codes.NotFound, "there is no %s %q; did you mean %q?", kind, text, near)
	}
	return status.Errorf(codes.NotFound, "there is no %s %q", kind, text)
}

// mayEnd refuses callers that are neither users nor above a job: one may end
// itself and what it launched.
func mayEnd(x *jobTable, who caller, j *state.Job) error {
	if who.Kind != callerJob {
		return nil
	}
	for at := j; at != nil; at = x.byID[at.Launch.Parent] {
		if at.ID == who.JobID {
			return nil
		}
		if at.Launch == nil {
			break
		}
	}
	return status.Errorf(codes.PermissionDenied, "job %s may end itself and what it launched, and %s is neither", who.JobID, j.ID)
}

// known refuses calls that nobody authenticated.
func known(ctx context.Context) (caller, error) {
	who := callerOf(ctx)
	if who.Kind == "" {
		return who, status.Error(codes.Unauthenticated, "the call carries no token")
	}
	return who, nil
}

// do has the desk change the state. Its error is a status.
func (c *clusterServer) do(ctx context.Context, change Change) error {
	err := c.Desk.Do(ctx, change)
	switch _, isStatus := status.FromError(err); {
	case err == nil, isStatus:
		return err
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	if _, taken := errors.AsType[*launch.NameTakenError](err); taken {
		return err // the caller waits
	}
	return status.Errorf(codes.Unavailable, "%v", err)
}

// present is what the loop saw last. One that has only begun to lead has to
// look first.
func (c *clusterServer) present(ctx context.Context) (*View, error) {
	var v *View
	err := c.await(ctx, func(seen *View) bool {
		v = seen
		return true
	})
	return v, err
}

// await waits until a view is as wanted, which the present one may be. The
// server ends ctx when this controller stops leading.
func (c *clusterServer) await(ctx context.Context, wanted func(*View) bool) error {
	for {
		changed := c.Desk.Changed()
		if v := c.Desk.View(); !v.At.IsZero() && wanted(v) {
			return nil
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-changed:
		}
	}
}

// namespaceFor is the namespace of a request that names one, or none. Jobs have
// their own only.
func namespaceFor(who caller, asked, path string) (string, error) {
	if who.Kind == callerJob {
		if asked != "" && asked != who.Namespace {
			return "", status.Errorf(codes.PermissionDenied, "%s: job %s is in namespace %s and may not use %s", path, who.JobID, who.Namespace, asked)
		}
		return who.Namespace, nil
	}
	if asked != "" && !validNamespace(asked) {
		return "", refused([]langrequest.Mistake{{Path: path, Summary: "Invalid name", Detail: fmt.Sprintf(
			"%q cannot name a namespace: a name is a letter or underscore, then letters, digits, underscores and hyphens, at most 63 in all.", asked)}})
	}
	return asked, nil
}

func validNamespace(scoped string) bool {
	addr := schema.ScopedAddress(schema.KindNamespace, scoped)
	parsed, err := schema.ParseAddress(addr.String())
	return err == nil && parsed == addr
}
