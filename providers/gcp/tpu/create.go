package tpu

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Create asks for a node, or for a queued resource with one.
func (t *Engine) Create(ctx context.Context, r engine.Order) (string, error) {
	node, err := t.node(r)
	if err != nil {
		return "", err
	}
	operation, err := t.ask(ctx, r, node)
	if status.Code(err) == codes.AlreadyExists {
		return "", t.adopt(ctx, r.Spec)
	}
	return operation, err
}

func (t *Engine) ask(ctx context.Context, r engine.Order, node *tpuapi.Node) (string, error) {
	parent := t.parent(r.Spec.Zone)
	if !isQueued(r.Spec) {
		operation, err := invoke(ctx, call{"create node", "parent", parent}, t.API.CreateNode, &tpuapi.CreateNodeRequest{
			Parent: parent, NodeId: r.Spec.Name, Node: node, RequestId: r.ID,
		})
		return operation.GetName(), err
	}
	operation, err := invoke(ctx, call{"create queued resource", "parent", parent}, t.API.CreateQueuedResource, &tpuapi.CreateQueuedResourceRequest{
		Parent: parent, QueuedResourceId: r.Spec.Name, QueuedResource: t.queued(r.Spec, node), RequestId: r.ID,
	})
	return operation.GetName(), err
}

// isQueued reports whether a slice is asked for through the queue. A
// reservation is too where it is named, or may be waited for, which nodes
// cannot.
func isQueued(spec schema.SliceSpec) bool {
	switch spec.Cloud.Provisioning {
	case schema.ProvisioningQueued:
		return true
	case schema.ProvisioningReserved:
		return spec.Cloud.ReservedIn != "" || spec.Cloud.ValidUntil > 0
	case schema.ProvisioningFlexStart:
		return false
	}
	return false
}

// node is what is asked for of a node. Its scheduling is set unless a queued
// resource's tier states the same.
func (t *Engine) node(r engine.Order) (*tpuapi.Node, error) {
	spec, cloud := r.Spec, r.Spec.Cloud
	shape, err := accelerators.Parse(spec.TPU)
	if err != nil {
		return nil, apierror.Errorf(schema.ErrorInvalid, "engine tpu makes TPU slices: %w", err)
	}
	runtime := cmp.Or(cloud.RuntimeVersion, runtimeVersion(shape.Generation))
	switch {
	case runtime == "":
		return nil, apierror.Errorf(schema.ErrorInvalid, "the TPU API does not serve %s; set engine = \"gce\"", shape.Generation)
	case cloud.Provisioning == schema.ProvisioningFlexStart:
		return nil, apierror.Errorf(schema.ErrorInvalid, "the TPU API has no flex-start; set engine = \"gce\", or provisioning = \"queued\"")
	}
	n := &tpuapi.Node{
		AcceleratorType: shape.Type,
		RuntimeVersion:  runtime,
		NetworkConfig: &tpuapi.NetworkConfig{
			Network: cloud.Network, Subnetwork: cloud.Subnetwork, EnableExternalIps: !cloud.Live.InternalIPs,
		},
		// Roles bound what the account may do; scopes would only hide which one is missing.
		ServiceAccount: &tpuapi.ServiceAccount{Email: cloud.ServiceAccount, Scope: []string{"https://www.googleapis.com/auth/cloud-platform"}},
		Labels:         mark.Labels(spec),
		Metadata:       r.Metadata,
		Tags:           mark.SplitList(cloud.Live.Tags),
		DataDisks:      t.disks(spec),
	}
	reserved := cloud.Provisioning == schema.ProvisioningReserved
	if !isQueued(spec) && (reserved || spec.Preemptible) {
		n.SchedulingConfig = &tpuapi.SchedulingConfig{Reserved: reserved, Spot: spec.Preemptible && !reserved}
	}
	return n, nil
}

// runtimeVersion is the one to use for a generation, as the documentation of
// Cloud TPU has it; "" for what the TPU API does not serve.
func runtimeVersion(generation string) string {
	switch generation {
	case "v2", "v3", "v4":
		return "tpu-ubuntu2204-base"
	case "v5litepod":
		return "v2-alpha-tpuv5-lite"
	case "v5p":
		return "v2-alpha-tpuv5"
	case "v6e":
		return "v2-alpha-tpuv6e"
	}
	return ""
}

func (t *Engine) disks(spec schema.SliceSpec) []*tpuapi.AttachedDisk {
	var disks []*tpuapi.AttachedDisk
	for _, each := range mark.SplitList(spec.Cloud.Disks) {
		name, readOnly := strings.CutSuffix(each, ":ro")
		if !strings.Contains(name, "/") {
			name = fmt.Sprintf("projects/%s/zones/%s/disks/%s", t.project, spec.Zone, name)
		}
		d := &tpuapi.AttachedDisk{SourceDisk: name, Mode: tpuapi.AttachedDisk_READ_WRITE}
		if readOnly {
			d.Mode = tpuapi.AttachedDisk_READ_ONLY
		}
		disks = append(disks, d)
	}
	return disks
}

func (t *Engine) queued(spec schema.SliceSpec, node *tpuapi.Node) *tpuapi.QueuedResource {
	q := &tpuapi.QueuedResource{Resource: &tpuapi.QueuedResource_Tpu_{Tpu: &tpuapi.QueuedResource_Tpu{
		NodeSpec: []*tpuapi.QueuedResource_Tpu_NodeSpec{{Parent: t.parent(spec.Zone), NodeId: spec.Name, Node: node}},
	}}}
	switch {
	case spec.Cloud.Provisioning == schema.ProvisioningReserved:
		q.Tier = &tpuapi.QueuedResource_Guaranteed_{Guaranteed: &tpuapi.QueuedResource_Guaranteed{Reserved: true}}
		if q.ReservationName = spec.Cloud.ReservedIn; q.ReservationName != "" && !strings.Contains(q.ReservationName, "/") {
			q.ReservationName = t.parent(spec.Zone) + "/reservations/" + q.ReservationName
		}
	case spec.Preemptible:
		q.Tier = &tpuapi.QueuedResource_Spot_{Spot: &tpuapi.QueuedResource_Spot{}}
	default:
		q.Tier = &tpuapi.QueuedResource_Guaranteed_{Guaranteed: &tpuapi.QueuedResource_Guaranteed{}}
	}
	if wait := time.Duration(spec.Cloud.ValidUntil); wait > 0 {
		q.QueueingPolicy = &tpuapi.QueuedResource_QueueingPolicy{
			StartTimingConstraints: &tpuapi.QueuedResource_QueueingPolicy_ValidUntilDuration{ValidUntilDuration: durationpb.New(wait)},
		}
	}
	return q
}

// adopt takes what has the slice's name for the slice if it is: it carries the
// stack's mark and was asked for in the same way. Whether it lives is for the
// inventory to report.
func (t *Engine) adopt(ctx context.Context, spec schema.SliceSpec) error {
	s, err := t.lookup(ctx, engine.Place{Zone: spec.Zone, Name: spec.Name})
	switch {
	case err != nil:
		return err
	case s == nil:
		return apierror.Errorf(schema.ErrorUnavailable, "something of this name was there and is gone")
	}
	m := s.marks()
	switch {
	case !m.Owned(""):
		return apierror.Errorf(schema.ErrorConflict, "there is one of this name in %s that is not fray's; delete it, or import it", spec.Zone)
	case !m.Owned(spec.Stack):
		return apierror.Errorf(schema.ErrorConflict, "another stack (%s) has a slice of this name in %s", m.Labels[mark.StackLabel], spec.Zone)
	case s.deleting():
		return apierror.Errorf(schema.ErrorUnavailable, "the slice of this name is still being deleted")
	}
	was, err := m.Spec()
	if err != nil {
		return apierror.Errorf(schema.ErrorConflict, "there is one of this name in %s, but %w; correct that, or delete it", spec.Zone, err)
	}
	if was.Fixed() != spec.Fixed() {
		return apierror.Errorf(schema.ErrorConflict, "the slice is there and was made otherwise; delete it first")
	}
	return nil
}
