package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// hostPatience bounds how long a host may take to answer before its controller
// is asked instead, and leaderPatience the same of who leads.
const (
	hostPatience   = 3 * time.Second
	leaderPatience = 5 * time.Second
)

// execStream is a call that runs a command, at a host or at a controller.
type execStream = grpc.BidiStreamingClient[clusterapi.ExecRequest, clusterapi.ExecResponse]

// hostLink is a way to a host: to its agent, or to the controller.
type hostLink struct {
	exec  func(ctx context.Context) (execStream, error)
	close func()
}

// HostReport is the last report of a host.
func HostReport(ctx context.Context, l *configuration.Loaded, slice string, host int) (state.HostReport, error) {
	var report state.HostReport
	object, err := l.Stack.Store.Get(ctx, store.HostKey(slice, host))
	if err != nil {
		return report, fmt.Errorf("read the report of host %d of slice %s: %w", host, slice, err)
	}
	if err := store.Decode(object.Data, &report); err != nil {
		return report, fmt.Errorf("read the report of host %d of slice %s: %w", host, slice, err)
	}
	return report, nil
}

// toHost connects to a task's host, by the controller if the host itself cannot
// be reached from here.
func toHost(ctx context.Context, l *configuration.Loaded, t Task) (*hostLink, error) {
	report, err := HostReport(ctx, l, t.slice, t.host)
	if err != nil {
		return nil, err
	}
	if report.API == "" {
		return nil, fmt.Errorf("host %d of slice %s, where task %d of %s is, runs no commands: its agent (fray %s) serves none; tasks are %s",
			t.host, t.slice, t.index, t.job, report.Version, t.places)
	}
	signer := l.Stack.Signer(l.Document)
	if err := l.Stack.Prove(ctx, signer); err != nil {
		return nil, err
	}
	conn, direct := dialHost(ctx, report, l.Stack.HostToken(signer, report.At))
	if direct == nil {
		client := clusterapi.NewHostClient(conn)
		return &hostLink{
			exec:  func(ctx context.Context) (execStream, error) { return client.Exec(ctx) },
			close: func() { conn.Close() },
		}, nil
	}
	follow, err := l.Stack.Cluster(ctx, l.Document)
	if err == nil {
		short, cancel := context.WithTimeout(ctx, leaderPatience)
		defer cancel()
		_, err = follow.Leader(short)
	}
	if err != nil {
		return nil, fmt.Errorf("host %d of slice %s, where task %d of %s is, cannot be reached from here (%w), and no controller forwards the command: %w",
			t.host, t.slice, t.index, t.job, direct, err)
	}
	client := clusterapi.NewClusterClient(follow)
	return &hostLink{
		exec:  func(ctx context.Context) (execStream, error) { return client.Exec(ctx) },
		close: func() { follow.Close() },
	}, nil
}

// dialHost connects to an agent, or says why that does not work.
func dialHost(ctx context.Context, report state.HostReport, token dial.Token) (*grpc.ClientConn, error) {
	conn, err := dial.Open(report.API, report.Fingerprint, token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, hostPatience)
	defer cancel()
	conn.Connect()
	for at := conn.GetState(); at != connectivity.Ready; at = conn.GetState() {
		if at == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, at) {
			conn.Close()
			return nil, errors.New("no answer at " + report.API)
		}
	}
	return conn, nil
}
