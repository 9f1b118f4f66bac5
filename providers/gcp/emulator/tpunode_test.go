package emulator_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/cloud/common"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

func TestNodeComesUp(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	op := w.create("a", spot())
	w.want("a", tpuapi.Node_CREATING)
	w.clock.Advance(5 * time.Second)
	node := w.want("a", tpuapi.Node_READY)
	if len(node.GetNetworkEndpoints()) != 4 || node.GetHealth() != tpuapi.Node_HEALTHY {
		t.Errorf("a ready v5litepod-16 has endpoints %v and health %v, want 4 and HEALTHY", node.GetNetworkEndpoints(), node.GetHealth())
	}
	done := w.poll(op)
	var made tpuapi.Node
	if err := done.GetResponse().UnmarshalTo(&made); err != nil {
		t.Fatal(err)
	}
	if made.GetHealth() != tpuapi.Node_HEALTH_UNSPECIFIED || made.GetName() != parent+"/nodes/a" {
		t.Errorf("the response is %v, want the node without health", &made)
	}
	var metadata common.OperationMetadata
	if err := done.GetMetadata().UnmarshalTo(&metadata); err != nil {
		t.Fatal(err)
	}
	if metadata.GetVerb() != "create" || metadata.GetTarget() != parent+"/nodes/a" || metadata.GetEndTime() == nil {
		t.Errorf("the metadata is %v", &metadata)
	}
}

func TestDeleteNodeAnswersEmpty(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("a", spot())
	op, err := w.tpu.DeleteNode(t.Context(), &tpuapi.DeleteNodeRequest{Name: parent + "/nodes/a"})
	if err != nil {
		t.Fatal(err)
	}
	w.want("a", tpuapi.Node_DELETING)
	w.clock.Advance(time.Minute)
	w.gone("a")
	if err := w.poll(op).GetResponse().UnmarshalTo(&emptypb.Empty{}); err != nil {
		t.Errorf("the response of a deletion: %v", err)
	}
}

func TestUpdateNode(t *testing.T) {
	tests := []struct {
		path string
		code codes.Code
	}{
		{"description", codes.OK}, {"tags", codes.OK}, {"labels", codes.OK}, {"metadata", codes.OK},
		{"network_config.enable_external_ips", codes.OK},
		{"accelerator_type", codes.InvalidArgument}, {"runtime_version", codes.InvalidArgument},
		{"network_config", codes.InvalidArgument}, {"network_config.network", codes.InvalidArgument},
		{"data_disks", codes.InvalidArgument}, {"scheduling_config", codes.InvalidArgument},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			w := newWorld(t, cloud.Scenario{})
			w.made("a", spot())
			_, err := w.tpu.UpdateNode(t.Context(), &tpuapi.UpdateNodeRequest{
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{test.path}},
				Node: &tpuapi.Node{
					Name: parent + "/nodes/a", Description: "d", Tags: []string{"t"}, Labels: map[string]string{"k": "v"},
					Metadata: map[string]string{"m": "n"}, NetworkConfig: &tpuapi.NetworkConfig{EnableExternalIps: true},
				},
			})
			if test.code != codes.OK {
				wantCode(t, err, test.code, test.path)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			node := w.want("a", tpuapi.Node_READY)
			got := map[string]bool{
				"description": node.GetDescription() == "d", "tags": slices.Equal(node.GetTags(), []string{"t"}),
				"labels": node.GetLabels()["k"] == "v" && len(node.GetLabels()) == 1, "metadata": node.GetMetadata()["m"] == "n",
				"network_config.enable_external_ips": node.GetNetworkEndpoints()[0].GetAccessConfig().GetExternalIp() != "",
			}
			for path, changed := range got {
				if changed != (path == test.path) {
					t.Errorf("after an update of %s: %s changed: %v", test.path, path, changed)
				}
			}
		})
	}
}

func TestUpdateOfAPreemptedNode(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("a", spot())
	w.preempt("a", false)
	_, err := w.tpu.UpdateNode(t.Context(), &tpuapi.UpdateNodeRequest{
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}}, Node: &tpuapi.Node{Name: parent + "/nodes/a"},
	})
	wantCode(t, err, codes.InvalidArgument, "not supported while in state PREEMPTED")
	_, err = w.tpu.UpdateNode(t.Context(), &tpuapi.UpdateNodeRequest{Node: &tpuapi.Node{Name: parent + "/nodes/a"}})
	wantCode(t, err, codes.InvalidArgument, "update_mask is required")
}
