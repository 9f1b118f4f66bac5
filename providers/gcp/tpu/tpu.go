package tpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	tpuv1 "cloud.google.com/go/tpu/apiv1"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Engine makes slices of the Cloud TPU API: a slice is a node of its name, or a
// queued resource of its name with a node of its name.
//
// The connection, its credentials and the operations are those of the official
// client, which speaks an old version of the API; the calls are tpuapi's.
type Engine struct {
	project    string
	client     *tpuv1.Client // nil where the service is in this process
	API        tpuapi.TpuClient
	operations operations
	reads      engine.Reader
	specs      mark.Specs
	seen       seenSlices
}

// operations are those of the service.
type operations interface {
	GetOperation(ctx context.Context, r *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error)
}

// remoteOperations are asked for by the official client.
type remoteOperations struct{ client *tpuv1.Client }

func (o remoteOperations) GetOperation(ctx context.Context, r *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	return o.client.LROClient.GetOperation(ctx, r)
}

// localOperations are those of a service in this process.
type localOperations struct {
	client longrunningpb.OperationsClient
}

func (o localOperations) GetOperation(ctx context.Context, r *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	return o.client.GetOperation(ctx, r)
}

// New finds the credentials, and makes no call.
func New(ctx context.Context, config engine.Config) (*Engine, error) {
	reads := engine.Reader{Backoff: config.Backoff}
	if config.Local != nil {
		ops := localOperations{longrunningpb.NewOperationsClient(config.Local.RPC)}
		return &Engine{project: config.Project, API: tpuapi.NewTpuClient(config.Local.RPC), operations: ops, reads: reads, seen: seenSlices{on: true}}, nil
	}
	pool, err := gtransport.DialPool(ctx, tpuOptions(config.Endpoint)...)
	if err != nil {
		return nil, apierror.Errorf(schema.ErrorPermission, "%w", apierror.CredentialsError(err))
	}
	client, err := tpuv1.NewClient(ctx, gtransport.WithConnPool(pool)) // whose Close is the pool's
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make TPU client: %w", err), pool.Close())
	}
	return &Engine{project: config.Project, client: client, API: tpuapi.NewTpuClient(pool), operations: remoteOperations{client}, reads: reads}, nil
}

// tpuOptions are the official client's own, which it keeps to itself, for a
// connection that it shares.
func tpuOptions(endpoint string) []option.ClientOption {
	options := []option.ClientOption{
		internaloption.WithDefaultEndpointTemplate("tpu.UNIVERSE_DOMAIN:443"),
		internaloption.WithDefaultMTLSEndpoint("tpu.mtls.googleapis.com:443"),
		internaloption.WithDefaultUniverseDomain("googleapis.com"),
		internaloption.WithDefaultAudience("https://tpu.googleapis.com/"),
		internaloption.WithDefaultScopes(tpuv1.DefaultAuthScopes()...),
		internaloption.EnableJwtWithScope(),
		internaloption.EnableNewAuthLibrary(),
		option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32))),
	}
	if host, ok := strings.CutPrefix(endpoint, "http://"); ok {
		options = append(options, option.WithEndpoint(host), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	}
	return options
}

// Close ends the connections.
func (t *Engine) Close() error {
	if t.client == nil {
		return nil
	}
	return t.client.Close()
}

func (t *Engine) parent(zone string) string {
	return fmt.Sprintf("projects/%s/locations/%s", t.project, zone)
}

func (t *Engine) nodeName(at engine.Place) string { return t.parent(at.Zone) + "/nodes/" + at.Name }

func (t *Engine) queuedName(at engine.Place) string {
	return t.parent(at.Zone) + "/queuedResources/" + at.Name
}

// zoneAndID takes a resource's name apart: projects/P/locations/ZONE/KIND/ID.
func zoneAndID(name string) (zone, id string) {
	if strings.Count(name, "/") != 5 {
		return "", name
	}
	for range 3 {
		_, name, _ = strings.Cut(name, "/")
	}
	zone, name, _ = strings.Cut(name, "/")
	_, id, _ = strings.Cut(name, "/")
	return zone, id
}

// Poll asks once for an operation. One that the service has forgotten is over.
func (t *Engine) Poll(ctx context.Context, _ engine.Order, operation string) (string, error) {
	get := func(ctx context.Context, r *longrunningpb.GetOperationRequest, _ ...grpc.CallOption) (*longrunningpb.Operation, error) {
		return t.operations.GetOperation(ctx, r)
	}
	c := call{what: "get operation", field: "name", target: operation}
	found, err := query(ctx, t.reads, c, get, &longrunningpb.GetOperationRequest{Name: operation})
	switch {
	case isNotFound(err):
		return "", nil
	case err != nil:
		return operation, &engine.AskError{Err: err}
	case !found.GetDone():
		return operation, nil
	case found.GetError() != nil:
		return "", &apierror.LateError{Err: status.ErrorProto(found.GetError())}
	}
	return "", nil
}

func (t *Engine) getNode(ctx context.Context, at engine.Place) (*tpuapi.Node, error) {
	name := t.nodeName(at)
	n, err := query(ctx, t.reads, call{"get node", "name", name}, t.API.GetNode, &tpuapi.GetNodeRequest{Name: name})
	if isNotFound(err) {
		return nil, nil
	}
	return n, err
}

func (t *Engine) getQueued(ctx context.Context, at engine.Place) (*tpuapi.QueuedResource, error) {
	name := t.queuedName(at)
	q, err := query(ctx, t.reads, call{"get queued resource", "name", name}, t.API.GetQueuedResource, &tpuapi.GetQueuedResourceRequest{Name: name})
	if isNotFound(err) {
		return nil, nil
	}
	return q, err
}
