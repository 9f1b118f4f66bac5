package tpu

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// pageSize is the most that the service gives at once.
const pageSize = 1000

// List lists queued resources and then nodes: whatever queue has brought forth a
// node by the time that it is listed, the node is listed after it. The other way
// round a node that comes up in between would seem gone.
func (t *Engine) List(ctx context.Context, stack string) (engine.Listing, error) {
	l := &allSlices{unlisted: map[string]string{}, slices: map[engine.Place]*slice{}, known: t.seen.begin(stack)}
	defer l.known.done()
	if err := t.listQueued(ctx, l); err != nil {
		return engine.Listing{}, err
	}
	if err := t.listNodes(ctx, l); err != nil {
		return engine.Listing{}, err
	}
	return t.own(l, stack), nil
}

// allSlices is everything in the project.
type allSlices struct {
	unlisted map[string]string
	slices   map[engine.Place]*slice // but for those of known nodes
	order    []*slice
	known    *seenList
}

// node takes in a node.
func (l *allSlices) node(n *tpuapi.Node) {
	s, again := l.known.slice(n)
	switch {
	case again:
	case s != nil && l.slices[s.at] == nil:
		l.order = append(l.order, s)
	default:
		l.slice(n.GetName()).node = n
	}
}

func (l *allSlices) slice(name string) *slice {
	zone, id := zoneAndID(name)
	at := engine.Place{Engine: schema.EngineTPU, Zone: zone, Name: id}
	s := l.slices[at]
	if s == nil {
		s = &slice{at: at}
		l.slices[at] = s
		l.order = append(l.order, s)
	}
	return s
}

func (l *allSlices) miss(locations []string) {
	for _, each := range locations {
		l.unlisted[path.Base(each)] = "the TPU API cannot reach it now"
	}
}

func (t *Engine) listQueued(ctx context.Context, l *allSlices) error {
	for token := ""; ; {
		c := call{"list queued resources", "parent", t.parent("-")}
		page, err := query(ctx, t.reads, c, t.API.ListQueuedResources, &tpuapi.ListQueuedResourcesRequest{
			Parent: c.target, PageSize: pageSize, PageToken: token,
		})
		if err != nil {
			return err
		}
		l.miss(page.GetUnreachable())
		for _, q := range page.GetQueuedResources() {
			l.slice(q.GetName()).queued = q
		}
		if token = page.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

func (t *Engine) listNodes(ctx context.Context, l *allSlices) error {
	for token := ""; ; {
		c := call{"list nodes", "parent", t.parent("-")}
		page, err := query(ctx, t.reads, c, t.API.ListNodes, &tpuapi.ListNodesRequest{
			Parent: c.target, PageSize: pageSize, PageToken: token,
		})
		if err != nil {
			return err
		}
		l.miss(page.GetUnreachable())
		for _, n := range page.GetNodes() {
			l.node(n)
		}
		if token = page.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

// Ready lists the nodes of all zones that are ready, and why zones are left out.
func (t *Engine) Ready(ctx context.Context) (nodes []Node, unlisted map[string]string, err error) {
	l := &allSlices{unlisted: map[string]string{}, slices: map[engine.Place]*slice{}}
	if err := t.listNodes(ctx, l); err != nil {
		return nil, nil, err
	}
	for _, s := range l.order {
		if s.node.GetState() == tpuapi.Node_READY {
			nodes = append(nodes, Node{Zone: s.at.Zone, Name: s.at.Name, Node: s.node})
		}
	}
	return nodes, l.unlisted, nil
}

// Node is a node that is ready, and where it is.
type Node struct {
	Zone string
	Name string // without its path
	Node *tpuapi.Node
}

// own is what of a listing is the stack's. Of a zone that was left out of one
// of the two lists nothing is believed: half of a slice would count as dead.
func (t *Engine) own(l *allSlices, stack string) engine.Listing {
	found := engine.Listing{Unlisted: l.unlisted, Slices: make([]*schema.SliceStatus, 0, len(l.order))}
	reader := t.specs.Reader()
	known := l.known
	for _, s := range l.order {
		if _, blind := l.unlisted[s.at.Zone]; blind {
			continue
		}
		if s.part() {
			found.Others = append(found.Others, s.at)
		}
		if status := known.status(s); status != nil {
			found.Slices = append(found.Slices, status)
			continue
		}
		m := s.marks()
		if !m.Owned(stack) {
			found.Others = append(found.Others, s.at)
			continue
		}
		status, err := s.status(m, reader)
		if err != nil {
			found.Skipped = append(found.Skipped, mark.Skipped(m, err))
			continue
		}
		known.keep(s, &status)
		found.Slices = append(found.Slices, &status)
	}
	reader.Done()
	return found
}

// status is how a slice is listed. One that lives and whose spec cannot be read
// is an error, which makes it a skipped item: listed without its owner, it would be
// deleted. One that is dead or going is listed with what else is known of it, for it
// has to go whatever it was; a copy of another one is not, for it is no slice.
func (s *slice) status(m mark.Marks, reader *mark.SpecReader) (schema.SliceStatus, error) {
	spec, err := reader.Read(m)
	if _, copied := errors.AsType[*mark.CopyError](err); copied {
		return schema.SliceStatus{}, err
	}
	preemptible := spec.Preemptible
	if err != nil {
		spec = s.guess(m)
		preemptible = spec.Preemptible
	}
	is := s.standing(preemptible)
	if err != nil && is.phase != schema.SliceDead && is.phase != schema.SliceDeleting {
		return schema.SliceStatus{}, mark.Unreadable(m, err)
	}
	if is.reason == "" && s.queued != nil && is.phase == schema.SliceCreating {
		is.reason = fmt.Sprintf("its queued resource is %s", s.queued.GetState().GetState())
	}
	listed := schema.SliceStatus{
		Spec: spec, Phase: is.phase, Reason: is.reason, Cause: is.cause, Waiting: is.queued, CreatedAt: s.createdAt(),
	}
	if is.phase == schema.SliceReady && s.node != nil {
		listed.Edited = mark.Edited(&spec, s.node.GetLabels(), s.node.GetTags())
	}
	return listed, nil
}

// guess is a spec as far as the cloud itself knows it. It has no owner.
func (s *slice) guess(m mark.Marks) schema.SliceSpec {
	n := s.node
	if n == nil {
		n = s.asked()
	}
	spec := schema.SliceSpec{
		Name: s.at.Name, Stack: m.Labels[mark.StackLabel], Provider: schema.ProviderGCP, TPU: n.GetAcceleratorType(), Zone: s.at.Zone, Hosts: 1,
		Preemptible: n.GetSchedulingConfig().GetSpot() || n.GetSchedulingConfig().GetPreemptible() ||
			s.queued.GetSpot() != nil || s.queued.GetBestEffort() != nil,
		Cloud: schema.CloudSpec{Engine: schema.EngineTPU, RuntimeVersion: n.GetRuntimeVersion()},
	}
	if shape, err := accelerators.Parse(spec.TPU); err == nil {
		spec.TPU, spec.Hosts = shape.Type, shape.Hosts
	}
	return spec
}
