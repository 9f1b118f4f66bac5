package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Machine is an instance or a TPU node that runs, whoever made it.
type Machine struct {
	Name    string
	Zone    string
	Address string // within the network, of the node's first host
	Labels  map[string]string
	Created time.Time // zero where it is not known
}

// MachineList is what one pass over a project has found.
type MachineList struct {
	Machines []Machine
	// Unlisted says of zones why what is in them is not known, or not all of it.
	Unlisted map[string]string
}

// Machines lists a project's machines.
type Machines struct {
	tpu *tpu
	gce *gce
}

// OpenMachines finds the credentials, and makes no call. Of the configuration it
// reads Project, Endpoint and Backoff. Close it after use.
func OpenMachines(ctx context.Context, config Config) (*Machines, error) {
	m, err := openMachines(context.WithoutCancel(ctx), config) // it also fetches tokens later
	return m, classified("connect to Google Cloud", "", err)
}

func openMachines(ctx context.Context, config Config) (*Machines, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	tpu, err := dialTPU(ctx, config)
	if err != nil {
		return nil, err
	}
	instances, err := compute.NewInstancesRESTClient(ctx, computeOptions(config.Endpoint)...)
	if err != nil {
		return nil, errors.Join(err, tpu.close())
	}
	*instances.CallOptions = compute.InstancesCallOptions{}
	gce := &gce{clients: computeClients{instances: instances}, project: config.Project, reader: reader{config.Backoff}}
	return &Machines{tpu: tpu, gce: gce}, nil
}

// Close ends the connections.
func (m *Machines) Close() error { return errors.Join(m.tpu.close(), m.gce.close()) }

// List lists the machines that run, in no order that means anything.
func (m *Machines) List(ctx context.Context) (MachineList, error) {
	list, err := m.list(ctx)
	return list, classified("list machines", "", err)
}

func (m *Machines) list(ctx context.Context) (MachineList, error) {
	nodes := &tpuListing{unlisted: map[string]string{}, slices: map[place]*tpuSlice{}}
	if err := m.tpu.listNodes(ctx, nodes); err != nil {
		return MachineList{}, fmt.Errorf("engine %s: %w", schema.EngineTPU, err)
	}
	var instances []Machine
	err := again(ctx, m.gce.reader, func() error {
		instances = nil
		return m.gce.eachMachine(ctx, new("status=RUNNING"), nodes.unlisted, func(i *computepb.Instance) {
			instances = append(instances, instanceMachine(i))
		})
	})
	if err != nil {
		return MachineList{}, fmt.Errorf("engine %s: list instances: %w", schema.EngineGCE, interrupted(ctx, err))
	}
	found := MachineList{Unlisted: nodes.unlisted}
	for _, s := range nodes.order {
		if s.node.GetState() == tpuapi.Node_READY {
			instances = append(instances, nodeMachine(s))
		}
	}
	for _, each := range instances {
		if each.Address != "" {
			found.Machines = append(found.Machines, each)
		}
	}
	return found, nil
}

func instanceMachine(i *computepb.Instance) Machine {
	created, _ := time.Parse(time.RFC3339, i.GetCreationTimestamp())
	m := Machine{Name: i.GetName(), Zone: baseOf(i.GetZone()), Labels: maps.Clone(i.GetLabels()), Created: created}
	if nets := i.GetNetworkInterfaces(); len(nets) > 0 {
		m.Address = cmp.Or(nets[0].GetNetworkIP(), nets[0].GetIpv6Address())
	}
	return m
}

func nodeMachine(s *tpuSlice) Machine {
	m := Machine{Name: s.at.name, Zone: s.at.zone, Labels: maps.Clone(s.node.GetLabels()), Created: s.node.GetCreateTime().AsTime()}
	if hosts := s.node.GetNetworkEndpoints(); len(hosts) > 0 {
		m.Address = hosts[0].GetIpAddress()
	}
	return m
}
