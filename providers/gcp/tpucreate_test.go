package gcp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

type fixedMetadata map[string]string

func (f fixedMetadata) Metadata(schema.SliceSpec) (map[string]string, error) { return f, nil }

// plain is what is asked for of every node.
const plain = `
	accelerator_type: "v5litepod-16" runtime_version: "v2-alpha-tpuv5-lite"
	service_account { scope: "https://www.googleapis.com/auth/cloud-platform" }
	labels { key: "fray-slice" value: "one" } labels { key: "fray-stack" value: "stack-a" }
	network_config { enable_external_ips: true }`

// nodeRequest asks for a node, as text has it.
func nodeRequest(t *testing.T, text string) proto.Message {
	t.Helper()
	r := &tpuapi.CreateNodeRequest{Parent: "projects/acme/locations/us-west4-a", NodeId: "one", Node: &tpuapi.Node{}}
	if err := prototext.Unmarshal([]byte(text), r.GetNode()); err != nil {
		t.Fatal(err)
	}
	return r
}

// queueRequest asks for a plain node by a queued resource, which text has the rest of.
func queueRequest(t *testing.T, text string) proto.Message {
	t.Helper()
	r := &tpuapi.CreateQueuedResourceRequest{
		Parent: "projects/acme/locations/us-west4-a", QueuedResourceId: "one", QueuedResource: &tpuapi.QueuedResource{},
	}
	text += `tpu { node_spec { parent: "projects/acme/locations/us-west4-a" node_id: "one" node {` + plain + `} } }`
	if err := prototext.Unmarshal([]byte(text), r.GetQueuedResource()); err != nil {
		t.Fatal(err)
	}
	return r
}

// wantRequest checks the one request that was made, but for metadata and its id.
func (s *tpuService) wantRequest(t *testing.T, want proto.Message) {
	t.Helper()
	if len(s.requests) != 1 {
		t.Fatalf("the requests are %v, want one", s.requests)
	}
	diff := cmp.Diff(want, s.requests[0], protocmp.Transform(), protocmp.IgnoreFields(&tpuapi.Node{}, "metadata"),
		protocmp.IgnoreFields(&tpuapi.CreateNodeRequest{}, "request_id"),
		protocmp.IgnoreFields(&tpuapi.CreateQueuedResourceRequest{}, "request_id"))
	if diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// metadata is that of a node, be it one of a queued resource.
func (s *tpuService) metadata(name string) map[string]string {
	if n := s.node(name); n != nil {
		return n.GetMetadata()
	}
	return s.queue(name).GetTpu().GetNodeSpec()[0].GetNode().GetMetadata()
}

func TestCreationRequests(t *testing.T) {
	node := func(text string) proto.Message { return nodeRequest(t, text) }
	queue := func(text string) proto.Message { return queueRequest(t, text) }
	for name, test := range map[string]struct {
		change func(*schema.SliceSpec)
		want   proto.Message
	}{
		"spot":      {func(*schema.SliceSpec) {}, node(plain + `scheduling_config { spot: true }`)},
		"on demand": {onDemand, node(plain)},
		"reserved": {func(s *schema.SliceSpec) {
			s.Preemptible, s.Cloud.Provisioning = false, schema.ProvisioningReserved
		}, node(plain + `scheduling_config { reserved: true }`)},
		"reserved by name": {func(s *schema.SliceSpec) {
			s.Preemptible, s.Cloud.Provisioning, s.Cloud.ReservedIn = false, schema.ProvisioningReserved, "big"
		}, queue(`guaranteed { reserved: true } reservation_name: "projects/acme/locations/us-west4-a/reservations/big"`)},
		"reserved by another project": {func(s *schema.SliceSpec) {
			s.Preemptible, s.Cloud.Provisioning, s.Cloud.ReservedIn = false, schema.ProvisioningReserved, "projects/p/locations/z/reservations/r"
		}, queue(`guaranteed { reserved: true } reservation_name: "projects/p/locations/z/reservations/r"`)},
		"reserved and waiting": {func(s *schema.SliceSpec) {
			s.Preemptible, s.Cloud.Provisioning, s.Cloud.ValidUntil = false, schema.ProvisioningReserved, schema.Duration(4*time.Hour)
		}, queue(`guaranteed { reserved: true } queueing_policy { valid_until_duration { seconds: 14400 } }`)},
		"queued spot": {queuedSpec, queue(`spot {}`)},
		"queued on demand": {func(s *schema.SliceSpec) {
			s.Preemptible, s.Cloud.Provisioning = false, schema.ProvisioningQueued
		}, queue(`guaranteed {}`)},
		"queued with valid_until": {func(s *schema.SliceSpec) {
			s.Cloud.Provisioning, s.Cloud.ValidUntil = schema.ProvisioningQueued, schema.Duration(90*time.Minute)
		}, queue(`spot {} queueing_policy { valid_until_duration { seconds: 5400 } }`)},
		"everything": {func(s *schema.SliceSpec) {
			s.TPU = "v5e-16"
			s.Cloud = schema.CloudSpec{
				RuntimeVersion: "mine", Network: "net", Subnetwork: "sub", ServiceAccount: "sa@acme.iam.gserviceaccount.com",
				Disks: "data,ro:ro,projects/p/zones/z/disks/d",
				Live:  schema.CloudLive{Labels: "fray-stack=stolen,team=rl,empty=", Tags: "a,b", InternalIPs: true},
			}
		}, node(`accelerator_type: "v5litepod-16" runtime_version: "mine" scheduling_config { spot: true }
			network_config { network: "net" subnetwork: "sub" }
			service_account { email: "sa@acme.iam.gserviceaccount.com" scope: "https://www.googleapis.com/auth/cloud-platform" }
			tags: "a" tags: "b"
			data_disks { source_disk: "projects/acme/zones/us-west4-a/disks/data" mode: READ_WRITE }
			data_disks { source_disk: "projects/acme/zones/us-west4-a/disks/ro" mode: READ_ONLY }
			data_disks { source_disk: "projects/p/zones/z/disks/d" mode: READ_WRITE }
			labels { key: "fray-slice" value: "one" } labels { key: "fray-stack" value: "stack-a" }
			labels { key: "team" value: "rl" } labels { key: "empty" value: "" }`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			spec := tpuSpec("one", test.change)
			p := s.provider(t, func(c *Config) { c.Bootstrap = fixedMetadata{"startup-script": "#!/bin/sh"} })
			if err := p.Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			s.wantRequest(t, test.want)
			text, err := mark.Encode(spec)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"startup-script": "#!/bin/sh", "fray-spec": text}
			if diff := cmp.Diff(want, s.metadata("one")); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatTheTPUAPICannotMake(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*schema.SliceSpec)
		says   string
	}{
		"TPU7x":      {func(s *schema.SliceSpec) { s.TPU = "tpu7x-8" }, "engine = \"gce\""},
		"no TPU":     {func(s *schema.SliceSpec) { s.TPU, s.CPU = "", 4 }, "engine tpu makes TPU slices"},
		"flex-start": {func(s *schema.SliceSpec) { s.Cloud.Provisioning = schema.ProvisioningFlexStart }, "no flex-start"},
		"no zone":    {func(s *schema.SliceSpec) { s.Zone = "" }, "no zone"},
		"a path":     {func(s *schema.SliceSpec) { s.Zone = "a-b/../c" }, "no zone"},
		"engine":     {func(s *schema.SliceSpec) { s.Cloud.Engine = "aws" }, "no engine"},
		"stack":      {func(s *schema.SliceSpec) { s.Stack = "Stack A" }, "no stack's mark"},
		"long name":  {func(s *schema.SliceSpec) { s.Name = "a123456789012345678901234567890123456789012345678901234567890123" }, "no slice's name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			wantKind(t, s.provider(t).Create(t.Context(), tpuSpec("one", test.change)), schema.ErrorInvalid, test.says)
			if len(s.calls) != 0 {
				t.Errorf("the service was asked: %v", s.calls)
			}
		})
	}
}

func TestAdoption(t *testing.T) {
	for name, test := range map[string]struct {
		there  func(*schema.SliceSpec)
		change func(*tpuapi.Node)
		kind   schema.ErrorKind // "": it is adopted
		says   string
	}{
		"equal":           {},
		"changed in live": {there: func(s *schema.SliceSpec) { s.Cloud.Live.Tags = "a" }},
		"dead":            {change: func(n *tpuapi.Node) { n.State = tpuapi.Node_PREEMPTED }},
		"made otherwise": {
			there: func(s *schema.SliceSpec) { s.Index = 7 }, kind: schema.ErrorConflict, says: "made otherwise",
		},
		"another stack's": {
			there: func(s *schema.SliceSpec) { s.Stack = "stack-b" }, kind: schema.ErrorConflict, says: "another stack (stack-b)",
		},
		"not fray's": {
			change: func(n *tpuapi.Node) { n.Labels = nil }, kind: schema.ErrorConflict, says: "not fray's",
		},
		"unreadable": {
			change: func(n *tpuapi.Node) { n.Metadata = nil }, kind: schema.ErrorConflict, says: "has no fray-spec",
		},
		"being deleted": {
			change: func(n *tpuapi.Node) { n.State = tpuapi.Node_DELETING }, kind: schema.ErrorUnavailable, says: "still being deleted",
		},
	} {
		for _, way := range []string{"node", "queued"} {
			t.Run(name+" "+way, func(t *testing.T) {
				s := newTPUService(t)
				spec := tpuSpec("one")
				if way == "queued" {
					queuedSpec(&spec)
				}
				there := spec
				if test.there != nil {
					test.there(&there)
				}
				n := nodeOf(t, there)
				if test.change != nil {
					test.change(n)
				}
				s.setNode("one", n)
				if way == "queued" {
					q := queuedOf(t, there)
					q.GetTpu().GetNodeSpec()[0].Node = proto.CloneOf(n)
					s.setQueued("one", q)
				}
				err := s.provider(t).Create(t.Context(), spec)
				if test.kind == "" {
					if err != nil {
						t.Error(err)
					}
				} else {
					wantKind(t, err, test.kind, test.says)
				}
				if len(s.requests) != 0 {
					t.Errorf("it was changed: %v", s.requests)
				}
			})
		}
	}
}

// The slice may go between the rejection and the read of it.
func TestAdoptionOfWhatIsGone(t *testing.T) {
	s := newTPUService(t)
	s.setNode("one", nodeOf(t, tpuSpec("one")))
	s.lose = func(string) error { return nil }
	s.reject = func(method string) error {
		if method == "GetQueuedResource" {
			clear(s.nodes)
		}
		return nil
	}
	wantKind(t, s.provider(t).Create(t.Context(), tpuSpec("one")), schema.ErrorUnavailable, "is gone")
}

// A reply that is lost leaves open whether the slice is made. Asked again, by
// the same process or another, it is made once.
func TestCreateWhoseReplyIsLost(t *testing.T) {
	for name, change := range map[string]func(*schema.SliceSpec){"node": func(*schema.SliceSpec) {}, "queued resource": queuedSpec} {
		for _, restarted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := newTPUService(t)
				p := s.provider(t)
				spec := tpuSpec("one", change)
				s.lose = func(string) error { return status.Error(codes.Unavailable, "connection reset") }
				wantKind(t, p.Create(t.Context(), spec), schema.ErrorUnavailable, "connection reset")
				s.do(func() { s.lose = nil })
				if restarted {
					p = s.provider(t)
				}
				if err := p.Create(t.Context(), spec); err != nil {
					t.Fatal(err)
				}
				if n := len(s.nodes) + len(s.queued); n != 1 || len(s.requests) != 1 {
					t.Errorf("there are %d of it, made by %d requests", n, len(s.requests))
				}
				// The same request answers with the operation that is there.
				if looked := s.count("GetNode") > 0; looked != restarted {
					t.Errorf("what is there was looked at: %v, after a restart: %v", looked, restarted)
				}
				if asked := s.count("CreateNode") + s.count("CreateQueuedResource"); asked != 2 {
					t.Errorf("it was asked for %d times", asked)
				}
			})
		}
	}
}

func TestCreateWithoutAnswer(t *testing.T) {
	s := newTPUService(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the lease is lost")
	s.reject = func(string) error {
		cancel(cause)
		return status.Error(codes.Canceled, "cancelled")
	}
	err := s.provider(t).Create(ctx, tpuSpec("one"))
	wantKind(t, err, schema.ErrorUnavailable)
	if !errors.Is(err, cause) {
		t.Errorf("the error %v does not say that %v", err, cause)
	}
}
