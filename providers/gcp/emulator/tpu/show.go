package tpu

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// shown keeps the messages made of groups for as long as the groups do not
// change. A message that was handed out is never changed.
type shown struct {
	mu    sync.Mutex
	nodes map[int64]shownNode // by the group's id
}

type shownNode struct {
	of   *cloud.Group
	node *tpuapi.Node
}

// node is a group as the API shows it.
func (s *shown) node(g *cloud.Group) *tpuapi.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, ok := s.nodes[g.ID]; ok && kept.of == g {
		return kept.node
	}
	if s.nodes == nil {
		s.nodes = map[int64]shownNode{}
	}
	node := nodeOf(g)
	s.nodes[g.ID] = shownNode{g, node}
	return node
}

// changed forgets a group that is gone.
func (s *shown) changed(g *cloud.Group) {
	if g.State == cloud.StateGone {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.nodes, g.ID)
	}
}

// nodeOf makes the message of a group: what was asked for, and what is.
func nodeOf(g *cloud.Group) *tpuapi.Node {
	n := name{project: g.Project, zone: g.Zone}
	node := proto.CloneOf(g.Detail.(*tpuapi.Node))
	node.Name = n.parent() + "/nodes/" + g.Name
	node.Id = g.ID
	node.State = tpuapi.Node_State(tpuapi.Node_State_value[string(g.Shown)])
	node.CreateTime = timestamppb.New(g.Created)
	node.ApiVersion = tpuapi.Node_V2_ALPHA1
	node.Health, node.NetworkEndpoints, node.UpcomingMaintenance = 0, nil, nil
	if node.GetNetworkConfig() == nil {
		node.NetworkConfig = &tpuapi.NetworkConfig{}
	}
	if node.NetworkConfig.Network == "" {
		node.NetworkConfig.Network = "projects/" + g.Project + "/global/networks/default"
	}
	if node.GetServiceAccount() == nil {
		node.ServiceAccount = &tpuapi.ServiceAccount{
			Email: "default@" + g.Project + ".iam.gserviceaccount.com", Scope: []string{"https://www.googleapis.com/auth/cloud-platform"},
		}
	}
	if config := configOf(g.AcceleratorType); config != nil {
		node.AcceleratorConfig = config
	}
	if g.Queued != "" {
		node.QueuedResource = n.parent() + "/queuedResources/" + g.Queued
	}
	if g.Maintenance {
		node.UpcomingMaintenance = maintenanceOf(g)
	}
	if !g.HealthUnknown {
		node.NetworkEndpoints = endpoints(g)
		node.Health = healthOf(g)
	}
	return node
}

func endpoints(g *cloud.Group) []*tpuapi.NetworkEndpoint {
	var all []*tpuapi.NetworkEndpoint
	for _, h := range g.Hosts {
		e := &tpuapi.NetworkEndpoint{IpAddress: h.Address, Port: 8470}
		if g.External {
			e.AccessConfig = &tpuapi.AccessConfig{ExternalIp: h.External}
		}
		all = append(all, e)
	}
	return all
}

// healthOf follows the state that is shown, not the hosts: a ready node is
// healthy with dead ones.
func healthOf(g *cloud.Group) tpuapi.Node_Health {
	switch g.Shown {
	case cloud.StateReady:
		return tpuapi.Node_HEALTHY
	case cloud.StateRepairing:
		return tpuapi.Node_UNHEALTHY_MAINTENANCE
	case cloud.StateCreating, cloud.StateRestarting, cloud.StateReimaging, cloud.StateStopping, cloud.StateStopped, cloud.StateStarting,
		cloud.StatePreempted, cloud.StateTerminated, cloud.StateHiding, cloud.StateHidden, cloud.StateUnhiding, cloud.StateUnknown,
		cloud.StateDeleting, cloud.StateGone:
	}
	return tpuapi.Node_HEALTH_UNSPECIFIED
}

func maintenanceOf(g *cloud.Group) *tpuapi.UpcomingMaintenance {
	status := tpuapi.UpcomingMaintenance_PENDING
	if g.Shown == cloud.StateRepairing {
		status = tpuapi.UpcomingMaintenance_ONGOING
	}
	return &tpuapi.UpcomingMaintenance{Type: tpuapi.UpcomingMaintenance_UNSCHEDULED.Enum(), MaintenanceStatus: status.Enum()}
}
