package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/apiserver"
	"github.com/fray-ml/fray/controller/metadata"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// metadataLoad is the load that measureMetadata puts on a service.
type metadataLoad struct {
	Actors   int // registered in one namespace
	Callers  int // that look up at once, over one connection
	Lookups  int // of all callers together
	Watchers int // streams over one connection, of one prefix
	Changes  int // each seen by all watchers
}

// metadataSpeed is what it measured, through TLS, tokens and the service, with client
// and server in one process.
type metadataSpeed struct {
	LookupsPerSecond float64
	LookupP99        time.Duration
	// Change is the time from the call that registers until the last watcher is
	// notified, the median of all changes.
	Change time.Duration
}

// measureMetadata puts a load on a Metadata service that keeps what is
// registered in a store.
func measureMetadata(ctx context.Context, s store.Store, load metadataLoad) (metadataSpeed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := newMeasured(ctx, s)
	if err != nil {
		return metadataSpeed{}, err
	}
	defer r.close()
	if err := r.register(ctx, load.Actors); err != nil {
		return metadataSpeed{}, fmt.Errorf("register actors: %w", err)
	}
	var speed metadataSpeed
	if load.Lookups > 0 {
		if speed.LookupsPerSecond, speed.LookupP99, err = r.lookups(ctx, load); err != nil {
			return metadataSpeed{}, fmt.Errorf("look up: %w", err)
		}
	}
	if load.Changes > 0 {
		if speed.Change, err = r.changes(ctx, load); err != nil {
			return metadataSpeed{}, fmt.Errorf("watch: %w", err)
		}
	}
	return speed, nil
}

// measuredServer is a server with one job that never ends, and a connection as that job.
type measuredServer struct {
	server *apiserver.Server
	conn   *grpc.ClientConn
	client clusterapi.MetadataClient
}

// fixedState always shows the same.
type fixedState struct{ view *access.View }

func (d fixedState) View() *access.View                      { return d.view }
func (d fixedState) Changed() <-chan struct{}                { return nil }
func (d fixedState) Do(context.Context, access.Change) error { return access.ErrNotLeading }

// contextLease holds as long as its context lives.
type contextLease struct{ ctx context.Context }

func (l contextLease) Context() context.Context { return l.ctx }
func (l contextLease) Epoch() uint64            { return 1 }
func (l contextLease) Valid() error             { return l.ctx.Err() }

var (
	_ access.State = fixedState{}
	_ access.Lease = contextLease{}
)

// measuredKey is the key of the host of that job, which is published nowhere.
type measuredKey struct{ signer *token.Signer }

func (k measuredKey) Key(_ context.Context, id token.ID) (token.Key, error) {
	if id != k.signer.ID() {
		return token.Key{}, token.ErrUnknownKey
	}
	return token.Key{ID: id, Public: k.signer.Public()}, nil
}

var _ token.Source = measuredKey{}

// measuredTokens are a token of the job and what verifies it.
func measuredTokens() (*token.Verifier, string, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", err
	}
	signer, err := token.NewSigner(private, "rig", token.ID{Role: token.RoleHost, Slice: "rig"})
	if err != nil {
		return nil, "", err
	}
	bearer, err := signer.Mint(token.Claims{Subject: token.SubjectJob, Namespace: "rig", JobID: "rig", Attempt: 1})
	if err != nil {
		return nil, "", err
	}
	verifier, err := token.NewVerifier("rig", measuredKey{signer})
	return verifier, bearer, err
}

func newMeasured(ctx context.Context, s store.Store) (*measuredServer, error) {
	tokens, bearer, err := measuredTokens()
	if err != nil {
		return nil, err
	}
	certificate, err := dial.NewCertificate()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	discard := slog.New(slog.DiscardHandler)
	names := metadata.New(s, discard, time.Now)
	r := &measuredServer{}
	r.server, err = apiserver.Serve(ctx, apiserver.Config{
		Listener: listener, Certificate: certificate, Tokens: tokens, Metadata: names,
		Leader: func() string { return "" }, Log: discard,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	addr := schema.LaunchedAddress(schema.KindJob, "rig", "", "rig")
	job := &state.Job{
		ID: "rig", Status: schema.JobRunning, Attempt: 1, Spec: &schema.Job{Addr: addr, Namespace: "rig"},
		Attempts: []state.Attempt{{Number: 1, Tasks: []state.Task{{Slice: "rig", State: schema.TaskRunning}}}},
	}
	fixed := fixedState{&access.View{Doc: &state.Document{Jobs: map[schema.Address]*state.Job{addr: job}}, Lease: store.Lease{Epoch: 1}}}
	names.Lead(contextLease{ctx}, fixed)
	r.server.Lead(contextLease{ctx}, fixed)
	r.conn, err = dial.Open(r.server.Address(), dial.Fingerprint(certificate), func(context.Context) (string, error) { return bearer, nil })
	if err != nil {
		r.server.Stop()
		return nil, err
	}
	r.client = clusterapi.NewMetadataClient(r.conn)
	return r, nil
}

func (r *measuredServer) close() {
	r.conn.Close()
	r.server.Stop()
}

func measuredName(i int) string { return fmt.Sprintf("actor-%d", i) }

func (r *measuredServer) register(ctx context.Context, actors int) error {
	register := func(i int) error {
		_, err := r.client.Register(ctx, &clusterapi.RegisterRequest{Name: measuredName(i), Address: "10.0.0.1:80"})
		return err
	}
	err := register(0)
	for status.Code(err) == codes.Unavailable && ctx.Err() == nil { // it has not read the endpoints yet
		sleep.For(ctx, time.Millisecond)
		err = register(0)
	}
	return errors.Join(err, together(64, actors, register))
}

// together calls f with 0 to n-1, from so many callers at once.
func together(callers, n int, f func(i int) error) error {
	var all sync.WaitGroup
	var next atomic.Int64
	failed := make([]error, callers)
	for c := range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed[c] == nil; i = int(next.Add(1)) - 1 {
				failed[c] = f(i)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

func (r *measuredServer) lookups(ctx context.Context, load metadataLoad) (perSecond float64, p99 time.Duration, err error) {
	took := make([]time.Duration, load.Lookups)
	began := time.Now()
	err = together(load.Callers, load.Lookups, func(i int) error {
		start := time.Now()
		_, err := r.client.Lookup(ctx, &clusterapi.LookupRequest{Name: measuredName(i % load.Actors)})
		took[i] = time.Since(start)
		return err
	})
	perSecond = float64(load.Lookups) / time.Since(began).Seconds()
	slices.Sort(took)
	return perSecond, took[len(took)*99/100], err
}

// changes registers one actor after the other and waits until all watchers know.
func (r *measuredServer) changes(ctx context.Context, load metadataLoad) (time.Duration, error) {
	noted := make(chan error, load.Watchers)
	for range load.Watchers {
		w, err := r.client.Watch(ctx, &clusterapi.WatchRequest{Prefix: "watched-"})
		if err != nil {
			return 0, err
		}
		go func() {
			for {
				_, err := w.Recv()
				noted <- err
				if err != nil {
					return
				}
			}
		}()
	}
	all := func() error {
		var failed error
		for range load.Watchers {
			failed = errors.Join(failed, <-noted)
		}
		return failed
	}
	if err := all(); err != nil { // the snapshots
		return 0, err
	}
	took := make([]time.Duration, load.Changes)
	for i := range took {
		start := time.Now()
		if _, err := r.client.Register(ctx, &clusterapi.RegisterRequest{Name: fmt.Sprintf("watched-%d", i), Address: "10.0.0.1:80"}); err != nil {
			return 0, err
		}
		if err := all(); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
