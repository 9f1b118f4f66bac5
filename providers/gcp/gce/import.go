package gce

import (
	"context"
	"maps"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
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
	for _, item := range m.Metadata.Items {
		metadata[item.Key] = item.Value
	}
	external := len(m.NetworkInterfaces) > 0 && len(m.NetworkInterfaces[0].AccessConfigs) > 0
	f := &engine.Found{
		Marks:    instanceMarks(m),
		Status:   machineStatus(schema.SliceSpec{}, m, false),
		Live:     engine.LiveOf(spec.Cloud.Live, m.Labels, m.Tags.Items, external),
		Metadata: metadata,
		Mark: func(ctx context.Context, labels, metadata map[string]string) error {
			return g.mark(ctx, m, labels, metadata)
		},
	}
	return f, compareMachine(f, m, spec)
}

// compareMachine finds the differences between an instance and what is declared.
func compareMachine(f *engine.Found, m *computeapi.Instance, spec schema.SliceSpec) error {
	declared, err := machinetype.Of(spec)
	if err != nil {
		return invalid(err)
	}
	scheduling := m.Scheduling
	if gpus, ok := machinetype.GPUs(spec); !ok || gpus.Attached { // else they come with the machine type
		f.Differs("GPU", cardsOf(m.GuestAccelerators), cardsOf(attachedGPUs(spec)))
	}
	f.Differs("machine type", baseOf(m.MachineType), declared)
	f.Differs("provisioning", engine.TierOf(scheduling.ProvisioningModel == "SPOT" || scheduling.Preemptible), engine.TierOf(spec.Preemptible))
	account, network := "", computeapi.NetworkInterface{}
	if len(m.ServiceAccounts) > 0 {
		account = m.ServiceAccounts[0].Email
	}
	if len(m.NetworkInterfaces) > 0 {
		network = m.NetworkInterfaces[0]
	}
	f.DiffersIfStated("network", network.Network, spec.Cloud.Network)
	f.DiffersIfStated("subnetwork", network.Subnetwork, spec.Cloud.Subnetwork)
	f.DiffersIfStated("service account", account, spec.Cloud.ServiceAccount)
	return nil
}

// mark gives an instance metadata and then labels, by which it is listed: what is
// listed has a spec.
func (g *api) mark(ctx context.Context, m *computeapi.Instance, labels, metadata map[string]string) error {
	at := schema.SliceSpec{Zone: baseOf(m.Zone), Name: m.Name}
	items := map[string]string{}
	for _, item := range m.Metadata.Items {
		items[item.Key] = item.Value
	}
	maps.Copy(items, metadata)
	changed := metadataItems(items)
	changed.Fingerprint = m.Metadata.Fingerprint
	op, err := g.set(ctx, m, "set metadata", "setMetadata", changed)
	if err := g.ended(ctx, at, op, err); err != nil {
		return err
	}
	all := maps.Clone(labels)
	for key, value := range m.Labels {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	op, err = g.set(ctx, m, "set labels", "setLabels", computeapi.LabelsRequest{Labels: all, LabelFingerprint: m.LabelFingerprint})
	return g.ended(ctx, at, op, err)
}

// ended waits for an operation that a call has begun.
func (g *api) ended(ctx context.Context, at schema.SliceSpec, op *computeapi.Operation, err error) error {
	if err != nil {
		return err
	}
	return engine.Settled(ctx, g.reader, func() (bool, error) {
		if over, err := isOver(op); over {
			return true, err
		}
		var err error
		op, err = g.operation(ctx, at, stageUpdate, op.Name)
		if err != nil {
			return false, err
		}
		return isOver(op)
	})
}
