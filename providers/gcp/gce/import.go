package gce

import (
	"context"
	"maps"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/google/uuid"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/machinetype"
	"github.com/fray-ml/fray/schema"
)

// Candidate reads an instance. A slice of several hosts cannot be made of those
// that are there.
func (g *Engine) Candidate(ctx context.Context, to engine.Target, spec schema.SliceSpec) (*engine.Found, error) {
	if spec.Hosts > 1 {
		return nil, apierror.Errorf(schema.ErrorInvalid, "%s has %d hosts, and an instance is one: on Compute Engine only slices of one host can be imported", spec.TPU, spec.Hosts)
	}
	m, there, err := g.findInstance(ctx, to.Zone, to.Name)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, apierror.Errorf(schema.ErrorInvalid, "there is no instance %s in %s", to.Name, to.Zone)
	}
	metadata := map[string]string{}
	for _, item := range m.GetMetadata().GetItems() {
		metadata[item.GetKey()] = item.GetValue()
	}
	external := len(m.GetNetworkInterfaces()) > 0 && len(m.GetNetworkInterfaces()[0].GetAccessConfigs()) > 0
	f := &engine.Found{
		Marks:    instanceMarks(m),
		Status:   machineStatus(schema.SliceSpec{}, m, false),
		Live:     engine.LiveOf(spec.Cloud.Live, m.GetLabels(), m.GetTags().GetItems(), external),
		Metadata: metadata,
		Mark: func(ctx context.Context, labels, metadata map[string]string) error {
			return g.mark(ctx, m, labels, metadata)
		},
	}
	return f, compareMachine(f, m, spec)
}

// compareMachine finds the differences between an instance and what is declared.
func compareMachine(f *engine.Found, m *computepb.Instance, spec schema.SliceSpec) error {
	declared, err := machinetype.Of(spec)
	if err != nil {
		return invalid(err)
	}
	scheduling := m.GetScheduling()
	if gpus, ok := machinetype.GPUs(spec); !ok || gpus.Attached { // else they come with the machine type
		f.Differs("GPU", cardsOf(m.GetGuestAccelerators()), cardsOf(guestAccelerators(spec)))
	}
	f.Differs("machine type", baseOf(m.GetMachineType()), declared)
	f.Differs("provisioning", engine.TierOf(scheduling.GetProvisioningModel() == "SPOT" || scheduling.GetPreemptible()), engine.TierOf(spec.Preemptible))
	account, network := "", &computepb.NetworkInterface{}
	if len(m.GetServiceAccounts()) > 0 {
		account = m.GetServiceAccounts()[0].GetEmail()
	}
	if len(m.GetNetworkInterfaces()) > 0 {
		network = m.GetNetworkInterfaces()[0]
	}
	f.DiffersIfStated("network", network.GetNetwork(), spec.Cloud.Network)
	f.DiffersIfStated("subnetwork", network.GetSubnetwork(), spec.Cloud.Subnetwork)
	f.DiffersIfStated("service account", account, spec.Cloud.ServiceAccount)
	return nil
}

// mark gives an instance metadata and then labels, by which it is listed: what is
// listed has a spec.
func (g *api) mark(ctx context.Context, m *computepb.Instance, labels, metadata map[string]string) error {
	at := schema.SliceSpec{Zone: baseOf(m.GetZone()), Name: m.GetName()}
	items := map[string]string{}
	for _, item := range m.GetMetadata().GetItems() {
		items[item.GetKey()] = item.GetValue()
	}
	maps.Copy(items, metadata)
	changed := metadataItems(items)
	changed.Fingerprint = m.GetMetadata().Fingerprint
	op, err := started(ask(ctx, "set metadata", g.clients.instances.SetMetadata, &computepb.SetMetadataInstanceRequest{
		Project: g.project, Zone: at.Zone, Instance: at.Name, RequestId: new(uuid.NewString()), MetadataResource: changed,
	}))
	if err := g.ended(ctx, at, op, err); err != nil {
		return err
	}
	all := maps.Clone(labels)
	for key, value := range m.GetLabels() {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	op, err = started(ask(ctx, "set labels", g.clients.instances.SetLabels, &computepb.SetLabelsInstanceRequest{
		Project: g.project, Zone: at.Zone, Instance: at.Name, RequestId: new(uuid.NewString()),
		InstancesSetLabelsRequestResource: &computepb.InstancesSetLabelsRequest{Labels: all, LabelFingerprint: m.LabelFingerprint},
	}))
	return g.ended(ctx, at, op, err)
}

// ended waits for an operation that a call has begun.
func (g *api) ended(ctx context.Context, at schema.SliceSpec, op *computepb.Operation, err error) error {
	if err != nil {
		return err
	}
	return engine.Settled(ctx, g.reader, func() (bool, error) {
		if over, err := isOver(op); over {
			return true, err
		}
		var err error
		op, err = g.operation(ctx, at, stageUpdate, op.GetName())
		if err != nil {
			return false, err
		}
		return isOver(op)
	})
}
