package actorrpc

import (
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/clusterapi"
)

// Environment variables of a task, which its agent sets.
const (
	envCluster   = "FRAY_CLUSTER_ADDRESS" // the agent's: host:port on this machine
	envToken     = "FRAY_CLUSTER_TOKEN"
	envNamespace = "FRAY_NAMESPACE"
	envIdentity  = "FRAY_ACTOR_IDENTITY" // path of a PEM file; "": plain text
)

// maxClusterMessage is the largest message of the cluster API, in bytes.
const maxClusterMessage = 64 << 20

// FromEnvironment makes a client for the cluster that this process is a task of, or whose
// program it is under fray run. Its namespace is FRAY_NAMESPACE.
// It is closed when ctx ends, or by Close.
func FromEnvironment(ctx context.Context) (*Client, error) {
	address := os.Getenv(envCluster)
	if address == "" {
		return nil, errors.New(envCluster + " is not set: this process is no task of a cluster; start it by fray run, or use a resolver.Fixed")
	}
	config := Config{Namespace: os.Getenv(envNamespace)}
	conn, err := dialCluster(address, os.Getenv(envToken))
	if err != nil {
		return nil, err
	}
	if config.Identity, err = identityOf(ctx, conn, config.Namespace); err != nil {
		conn.Close()
		return nil, err
	}
	names := resolver.NewCluster(clusterapi.NewMetadataClient(conn), config.Namespace)
	client := NewClient(names, config)
	client.closers = append(client.closers, func() {
		_ = names.Close()
		conn.Close()
	})
	context.AfterFunc(ctx, func() { _ = client.Close() })
	return client, nil
}

// identityOf is what this process shows to the actors of a namespace, nil where it has
// nothing to show. Jobs have it in a file; fray run has one for each namespace that the
// program which it runs asks for.
func identityOf(ctx context.Context, conn *grpc.ClientConn, namespace string) (*Identity, error) {
	file := os.Getenv(envIdentity)
	if file == "" && namespace != "" {
		answer, err := clusterapi.NewClientClient(conn).Identity(ctx, &clusterapi.IdentityRequest{Namespace: namespace})
		if err != nil && status.Code(err) != codes.Unimplemented { // which agents and controllers answer
			return nil, fmt.Errorf("get the identity of namespace %s: %w", namespace, err)
		}
		file = answer.GetFile()
	}
	if file == "" {
		return nil, nil
	}
	id, err := LoadIdentity(file)
	if err == nil {
		id.renew = func(ctx context.Context) { // which fray run does, and agents do by themselves
			_, _ = clusterapi.NewClientClient(conn).Identity(ctx, &clusterapi.IdentityRequest{Namespace: namespace})
		}
	}
	return id, err
}

// dialCluster connects to the cluster API at this host's agent: on the loopback
// address, so that the token may go in plain text.
func dialCluster(address, token string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithPerRPCCredentials(bearer{token}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxClusterMessage), grpc.MaxCallSendMsgSize(maxClusterMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", address, err)
	}
	return conn, nil
}

// bearer sends a token with each call.
type bearer struct{ token string }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if b.token == "" {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// RequireTransportSecurity is false: see dialCluster.
func (bearer) RequireTransportSecurity() bool { return false }
