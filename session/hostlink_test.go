package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// execController is a controller that says what it was asked to run, and by whom.
type execController struct {
	clusterapi.UnimplementedClusterServer
	tokens int
}

func (c *execController) Exec(stream grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	given, _ := metadata.FromIncomingContext(stream.Context())
	c.tokens += len(given.Get(dial.Header))
	text := fmt.Sprintf("%s/%d runs %q\n", first.GetStart().GetJobId(), first.GetStart().GetTask(), first.GetStart().GetCommand())
	if err := stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stdout{Stdout: []byte(text)}}); err != nil {
		return err
	}
	return stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{ExitCode: 6}})
}

// A host that cannot be reached is reached through the controller; without one
// the error says both.
func TestExecThroughTheController(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.CreateDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateSecret(filepath.Join(dir, "secret.key"), nil); err != nil {
		t.Fatal(err)
	}
	certificate, err := dial.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), key, data, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	st := &stack.Stack{Store: s, At: stack.Location(dir), Clock: store.NewLeaderClock(s)}
	st.Root = dir
	st.Keys = stack.NewKeys(s, st, nil)
	l := &configuration.Loaded{Stack: st, Document: &state.Document{Lineage: "a-stack-of-tests"}}
	task := Task{job: schema.Address{Kind: schema.KindJob, Name: "a"}, slice: "s", places: "0 on host 0 of slice s (running)"}

	put(store.HostKey("s", 0), state.HostReport{Slice: "s", Version: "0.0.1"})
	if _, err := toHost(t.Context(), l, task); err == nil || !strings.Contains(err.Error(), "its agent (fray 0.0.1) serves none") ||
		!strings.Contains(err.Error(), task.places) {
		t.Errorf("with a host that serves nothing: %v", err)
	}
	put(store.HostKey("s", 0), state.HostReport{Slice: "s", API: "127.0.0.1:1", Fingerprint: dial.Fingerprint(certificate)})
	if _, err := toHost(t.Context(), l, task); err == nil || !strings.Contains(err.Error(), "no answer at 127.0.0.1:1") ||
		!strings.Contains(err.Error(), "start one with fray watch") {
		t.Errorf("without a controller: %v", err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	controller := &execController{}
	server := grpc.NewServer(grpc.Creds(dial.ServerCredentials(certificate, func(net.Addr, error) {})))
	clusterapi.RegisterClusterServer(server, controller)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	now := time.Now()
	put(store.LeaseKey, store.Lease{
		Holder: "c", Epoch: 1, AcquiredAt: now, RenewedAt: now, ExpiresAt: now.Add(time.Hour),
		ControllerAddress: listener.Addr().String(), ControllerFingerprint: dial.Fingerprint(certificate),
	})
	link, err := toHost(t.Context(), l, task)
	if err != nil {
		t.Fatal(err)
	}
	defer link.close()
	var stdout, stderr bytes.Buffer
	session := &execSession{
		terminal: terminal.New(strings.NewReader(""), &stdout, &stderr), link: link, start: &clusterapi.ExecStart{JobId: "id-1", Command: []string{"ls", "-l"}},
	}
	code, err := session.run(t.Context())
	if want := "id-1/0 runs [\"ls\" \"-l\"]\n"; err != nil || code != 6 || stdout.String() != want || controller.tokens != 1 {
		t.Errorf("exit code %d, %v, output %q, %d tokens; want 6, %q and a token", code, err, stdout.String(), controller.tokens, want)
	}
}
