package gcp

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// tpuPageSize is the most that the service gives at once.
const tpuPageSize = 1000

// list lists queued resources and then nodes: whatever queue has brought forth a
// node by the time that it is listed, the node is listed after it. The other way
// round a node that comes up in between would look gone.
func (t *tpu) list(ctx context.Context, stack string) (listing, error) {
	l := &tpuListing{unlisted: map[string]string{}, slices: map[place]*tpuSlice{}}
	if err := t.listQueued(ctx, l); err != nil {
		return listing{}, err
	}
	if err := t.listNodes(ctx, l); err != nil {
		return listing{}, err
	}
	return t.own(l, stack), nil
}

// tpuListing is everything in the project.
type tpuListing struct {
	unlisted map[string]string
	slices   map[place]*tpuSlice
	order    []*tpuSlice
}

func (l *tpuListing) slice(name string) *tpuSlice {
	zone, id := zoneAndID(name)
	at := place{engine: schema.EngineTPU, zone: zone, name: id}
	s := l.slices[at]
	if s == nil {
		s = &tpuSlice{at: at}
		l.slices[at] = s
		l.order = append(l.order, s)
	}
	return s
}

func (l *tpuListing) miss(locations []string) {
	for _, each := range locations {
		l.unlisted[path.Base(each)] = "the TPU API cannot reach it now"
	}
}

func (t *tpu) listQueued(ctx context.Context, l *tpuListing) error {
	for token := ""; ; {
		c := call{"list queued resources", "parent", t.parent("-")}
		page, err := query(ctx, t.reads, c, t.api.ListQueuedResources, &tpuapi.ListQueuedResourcesRequest{
			Parent: c.target, PageSize: tpuPageSize, PageToken: token,
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

func (t *tpu) listNodes(ctx context.Context, l *tpuListing) error {
	for token := ""; ; {
		c := call{"list nodes", "parent", t.parent("-")}
		page, err := query(ctx, t.reads, c, t.api.ListNodes, &tpuapi.ListNodesRequest{
			Parent: c.target, PageSize: tpuPageSize, PageToken: token,
		})
		if err != nil {
			return err
		}
		l.miss(page.GetUnreachable())
		for _, n := range page.GetNodes() {
			l.slice(n.GetName()).node = n
		}
		if token = page.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

// own is what of a listing is the stack's. Of a zone that was left out of one
// of the two lists nothing is believed: half of a slice looks dead.
func (t *tpu) own(l *tpuListing, stack string) listing {
	found := listing{unlisted: l.unlisted}
	reader := t.specs.reader()
	for _, s := range l.order {
		if _, blind := l.unlisted[s.at.zone]; blind {
			continue
		}
		if s.part() {
			found.others = append(found.others, s.at)
		}
		m := s.marks()
		if !m.owned(stack) {
			found.others = append(found.others, s.at)
			continue
		}
		status, err := s.status(m, reader)
		if err != nil {
			found.skipped = append(found.skipped, skippedItem(m, err))
			continue
		}
		found.slices = append(found.slices, status)
	}
	reader.done()
	return found
}

// status is how a slice is listed. One that lives and whose spec cannot be read
// is an error, which makes it a skipped item: listed without its owner, it would be
// deleted. One that is dead or going is listed with what else is known of it, for it
// has to go whatever it was; a copy of another one is not, for it is no slice.
func (s *tpuSlice) status(m marks, reader *specReader) (schema.SliceStatus, error) {
	spec, err := reader.read(m)
	if _, copied := errors.AsType[*copyError](err); copied {
		return schema.SliceStatus{}, err
	}
	preemptible := spec.Preemptible
	if err != nil {
		spec = s.guess(m)
		preemptible = spec.Preemptible
	}
	is := s.standing(preemptible)
	if err != nil && is.phase != schema.SliceDead && is.phase != schema.SliceDeleting {
		return schema.SliceStatus{}, unreadable(m, err)
	}
	if is.reason == "" && s.queued != nil && is.phase == schema.SliceCreating {
		is.reason = fmt.Sprintf("its queued resource is %s", s.queued.GetState().GetState())
	}
	return schema.SliceStatus{
		Spec: spec, Phase: is.phase, Reason: is.reason, Cause: is.cause, Waiting: is.queued, CreatedAt: s.createdAt(),
	}, nil
}

// guess is a spec as far as the cloud itself knows it. It has no owner.
func (s *tpuSlice) guess(m marks) schema.SliceSpec {
	n := s.node
	if n == nil {
		n = s.asked()
	}
	spec := schema.SliceSpec{
		Name: s.at.name, Stack: m.labels[stackLabel], Provider: schema.ProviderGCP, TPU: n.GetAcceleratorType(), Zone: s.at.zone, Hosts: 1,
		Preemptible: n.GetSchedulingConfig().GetSpot() || n.GetSchedulingConfig().GetPreemptible() ||
			s.queued.GetSpot() != nil || s.queued.GetBestEffort() != nil,
		Cloud: schema.CloudSpec{Engine: schema.EngineTPU, RuntimeVersion: n.GetRuntimeVersion()},
	}
	if shape, err := schema.ParseAccelerator(spec.TPU); err == nil {
		spec.TPU, spec.Hosts = shape.Type, shape.Hosts
	}
	return spec
}
