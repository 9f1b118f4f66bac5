package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/gce"
	"github.com/fray-ml/fray/providers/gcp/tpu"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Machine is an instance or a TPU node that runs, made by fray or not.
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
	// Unlisted is why what is in a zone is not known, or not all of it, by zone.
	Unlisted map[string]string
}

// Machines lists a project's machines.
type Machines struct {
	tpu *tpu.Engine
	gce *gce.Engine
}

// OpenMachines finds the credentials, and makes no call. Of the configuration it
// reads Project, Endpoint and Backoff. Close it after use.
func OpenMachines(ctx context.Context, config Config) (*Machines, error) {
	m, err := openMachines(context.WithoutCancel(ctx), config) // it also fetches tokens later
	return m, apierror.Wrap("connect to Google Cloud", "", err)
}

func openMachines(ctx context.Context, config Config) (*Machines, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	nodes, err := tpu.New(ctx, config.engine())
	if err != nil {
		return nil, err
	}
	instances, err := gce.New(ctx, config.engine())
	if err != nil {
		return nil, errors.Join(err, nodes.Close())
	}
	return &Machines{tpu: nodes, gce: instances}, nil
}

// Close ends the connections.
func (m *Machines) Close() error { return errors.Join(m.tpu.Close(), m.gce.Close()) }

// List lists the machines that run, in no order that means anything.
func (m *Machines) List(ctx context.Context) (MachineList, error) {
	list, err := m.list(ctx)
	return list, apierror.Wrap("list machines", "", err)
}

func (m *Machines) list(ctx context.Context) (MachineList, error) {
	nodes, unlisted, err := m.tpu.Ready(ctx)
	if err != nil {
		return MachineList{}, fmt.Errorf("engine %s: %w", schema.EngineTPU, err)
	}
	instances, err := m.gce.Running(ctx, unlisted)
	if err != nil {
		return MachineList{}, fmt.Errorf("engine %s: %w", schema.EngineGCE, err)
	}
	var machines []Machine
	for _, each := range instances {
		machines = append(machines, instanceMachine(each.Zone, each.Instance))
	}
	for _, each := range nodes {
		machines = append(machines, nodeMachine(each.Zone, each.Name, each.Node))
	}
	found := MachineList{Unlisted: unlisted}
	for _, each := range machines {
		if each.Address != "" {
			found.Machines = append(found.Machines, each)
		}
	}
	return found, nil
}

func instanceMachine(zone string, i *computeapi.Instance) Machine {
	created, _ := time.Parse(time.RFC3339, i.CreationTimestamp)
	m := Machine{Name: i.Name, Zone: zone, Labels: maps.Clone(i.Labels), Created: created}
	if nets := i.NetworkInterfaces; len(nets) > 0 {
		m.Address = cmp.Or(nets[0].NetworkIP, nets[0].IPv6Address)
	}
	return m
}

func nodeMachine(zone, name string, n *tpuapi.Node) Machine {
	m := Machine{Name: name, Zone: zone, Labels: maps.Clone(n.GetLabels()), Created: n.GetCreateTime().AsTime()}
	if hosts := n.GetNetworkEndpoints(); len(hosts) > 0 {
		m.Address = hosts[0].GetIpAddress()
	}
	return m
}
