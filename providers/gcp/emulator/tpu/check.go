package tpu

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// metadataLimit is how many bytes the values of a node's metadata may have
// together, and each of them.
const (
	metadataLimit      = 512 << 10
	metadataValueLimit = 256 << 10
)

// checkNode is what is wrong with a node that is to be created, else its shape.
func (s *service) checkNode(n name, node *tpuapi.Node) (accelerators.Shape, error) {
	shape, err := s.shape(n, node)
	if err != nil {
		return accelerators.Shape{}, err
	}
	if !slices.Contains(s.runtimes(), node.GetRuntimeVersion()) {
		return accelerators.Shape{}, badRequest("the runtime version %q was not found in zone %s", node.GetRuntimeVersion(), n.zone)
	}
	if err := checkLabels(node.GetLabels()); err != nil {
		return accelerators.Shape{}, err
	}
	if err := checkMetadata(node.GetMetadata()); err != nil {
		return accelerators.Shape{}, err
	}
	for _, tag := range node.GetTags() {
		if err := checkID(tag); err != nil {
			return accelerators.Shape{}, err
		}
	}
	network := node.GetNetworkConfig().GetNetwork()
	if network = network[strings.LastIndexByte(network, '/')+1:]; network == "" {
		network = "default"
	}
	if !s.cloud.HasNetwork(network) {
		return accelerators.Shape{}, badRequest("The resource 'projects/%s/global/networks/%s' was not found", n.project, network)
	}
	return shape, nil
}

func checkMetadata(metadata map[string]string) error {
	total := 0
	for k, v := range metadata {
		total += len(k) + len(v)
		if len(v) > metadataValueLimit {
			return invalid("The metadata value of %q has %d bytes: at most %d are allowed.", k, len(v), metadataValueLimit)
		}
	}
	if total > metadataLimit {
		return invalid("The metadata has %d bytes: at most %d are allowed.", total, metadataLimit)
	}
	return nil
}

// shape is that of the node's accelerator_type, or of its accelerator_config.
func (s *service) shape(n name, node *tpuapi.Node) (accelerators.Shape, error) {
	want := node.GetAcceleratorType()
	if config := node.GetAcceleratorConfig(); config != nil {
		if want != "" {
			return accelerators.Shape{}, invalid("Only one of accelerator_type and accelerator_config may be set.")
		}
		want = typeOf(config)
	}
	shape, err := accelerators.Parse(want)
	known := err == nil && shape.Type == want && shape.Generation != "tpu7x"
	if !known || !slices.Contains(s.cloud.Offered(n.zone), shape.Generation) {
		return accelerators.Shape{}, badRequest("the accelerator %s was not found in zone %s", want, n.zone)
	}
	return shape, nil
}

// badRequest is the service's text for an error that it finds further inside.
func badRequest(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "Cloud TPU received a bad request. "+format+" [EID: 0x5eed]", args...)
}

// typeOf is the accelerator type of a generation and topology, "" for none.
func typeOf(config *tpuapi.AcceleratorConfig) string {
	for _, generation := range generations() {
		for _, suffix := range generation.sizes() {
			shape, err := accelerators.Parse(generation.name + "-" + suffix)
			if err == nil && generation.config == config.GetType() && shape.Topology == config.GetTopology() {
				return shape.Type
			}
		}
	}
	return ""
}
