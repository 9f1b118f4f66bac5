package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/logs"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/schema"
)

// readLog reads a log to its end, or until enough of it is there.
func readLog(ctx context.Context, client clusterapi.HostClient, request *clusterapi.LogsRequest, enough func(string) bool) (string, error) {
	stream, err := client.Logs(ctx, request)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		if m.GetOffset() != request.GetOffset()+int64(all.Len()) {
			return all.String(), errors.New("a message is not where the one before ended")
		}
		all.Write(m.GetData())
		if enough(all.String()) {
			return all.String(), nil
		}
	}
}

func never(string) bool { return false }

func TestLogsOfARunningTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two"))
	client := r.hostClient(minted(t, userClaims()))
	request := &clusterapi.LogsRequest{JobId: "id-1", Attempt: 1}
	eventually(t, "the first line", func() bool {
		got, err := readLog(t.Context(), client, request, never)
		return err == nil && got == "one\n"
	}, nothing)
	request.Follow = true
	if got, err := readLog(t.Context(), client, request, func(s string) bool { return s == "one\n" }); err != nil {
		t.Fatalf("following says %q, %v", got, err)
	}
	request.Offset = 2
	begun, done := make(chan struct{}), make(chan string, 1)
	go func() {
		got, err := readLog(t.Context(), client, request, func(s string) bool {
			if s == "e\n" {
				close(begun)
			}
			return false
		})
		if err != nil {
			got += err.Error()
		}
		done <- got
	}()
	select { // the log of a task that has ended may be gone already
	case <-begun:
	case got := <-done:
		t.Fatalf("followed from byte 2 while it runs it says %q", got)
	}
	if err := os.WriteFile(filepath.Join(r.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != "e\ntwo\n" {
		t.Errorf("followed from byte 2 it says %q, want %q", got, "e\ntwo\n")
	}
}

func TestLogsThatAreNotHere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("echo one; exec sleep 1000"))
	client := r.hostClient(minted(t, userClaims()))
	for _, test := range []struct {
		name    string
		request *clusterapi.LogsRequest
		want    codes.Code
	}{
		{"another job", &clusterapi.LogsRequest{JobId: "id-2", Attempt: 1}, codes.NotFound},
		{"another attempt", &clusterapi.LogsRequest{JobId: "id-1", Attempt: 2, Follow: true}, codes.NotFound},
		{"another task", &clusterapi.LogsRequest{JobId: "id-1", Attempt: 1, Task: 1}, codes.NotFound},
		{"before the beginning", &clusterapi.LogsRequest{JobId: "id-1", Attempt: 1, Offset: -1}, codes.InvalidArgument},
	} {
		if got, err := readLog(t.Context(), client, test.request, never); status.Code(err) != test.want || got != "" {
			t.Errorf("%s: says %q, %v; want %s", test.name, got, err, test.want)
		}
	}
	// Beyond the end is nothing yet.
	if got, err := readLog(t.Context(), client, &clusterapi.LogsRequest{JobId: "id-1", Attempt: 1, Offset: 1000}, never); err != nil || got != "" {
		t.Errorf("beyond the end it says %q, %v", got, err)
	}
	// Once the store has all of it, it is not on the host any more.
	r.awaitTask(r.assign(nil)-1, schema.TaskKilled)
	eventually(t, "the log to go", func() bool {
		_, err := readLog(t.Context(), client, &clusterapi.LogsRequest{JobId: "id-1", Attempt: 1}, never)
		return status.Code(err) == codes.NotFound && strings.Contains(err.Error(), "in the store")
	}, nothing)
}

// What an earlier attempt wrote and could not be shipped is still served.
func TestLogsOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("exec sleep 1000"))
	client := r.hostClient(minted(t, userClaims()))
	dir := filepath.Join(r.dir, hostdir.TasksDir, "before")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	past := hostdir.Intent{Key: "before", JobID: "id-0", Attempt: 4, Task: 2}
	if err := errors.Join(record.WriteJSON(filepath.Join(dir, hostdir.IntentFile), past),
		os.WriteFile(filepath.Join(dir, hostdir.OutputFile), []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	request := &clusterapi.LogsRequest{JobId: "id-0", Attempt: 4, Task: 2, Follow: true}
	if got, err := readLog(t.Context(), client, request, never); err != nil || got != "old" {
		t.Errorf("it says %q, %v; want %q", got, err, "old")
	}
}

// BenchmarkLogs streams a log of 64 MiB through TLS and compares with reading
// the file: x-file is how many times as long it takes.
func BenchmarkLogs(b *testing.B) {
	const size = 64 << 20
	file := filepath.Join(b.TempDir(), "log")
	data := make([]byte, size)
	_, _ = rand.Read(data)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	client := serveLog(b, f)
	begun := time.Now()
	const reads = 5
	for range reads {
		var got bytes.Buffer
		got.Grow(size)
		if _, err := io.Copy(&got, io.NewSectionReader(f, 0, size)); err != nil || got.Len() != size {
			b.Fatal(got.Len(), err)
		}
	}
	plain := time.Since(begun) / reads
	b.SetBytes(size)
	for b.Loop() {
		if n, err := lengthOf(b.Context(), client); err != nil || n != size {
			b.Fatalf("%d bytes came, %v; want %d", n, err, size)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(plain), "x-file")
}

// lengthOf reads a log and forgets it.
func lengthOf(ctx context.Context, client clusterapi.HostClient) (int, error) {
	stream, err := client.Logs(ctx, &clusterapi.LogsRequest{})
	if err != nil {
		return 0, err
	}
	for n := 0; ; {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += len(m.GetData())
	}
}

// oneLog serves one file, as hosts do.
type oneLog struct {
	clusterapi.UnimplementedHostServer
	file *os.File
}

func (o oneLog) Logs(_ *clusterapi.LogsRequest, to grpc.ServerStreamingServer[clusterapi.LogsResponse]) error {
	over := make(chan struct{})
	close(over)
	return (&logs.Stream{File: o.file, Over: over, To: to}).Send(true)
}

// serveLog serves a file over TLS.
func serveLog(tb testing.TB, f *os.File) clusterapi.HostClient {
	tb.Helper()
	certificate, err := dial.NewCertificate()
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(dial.ServerCredentials(certificate, func(net.Addr, error) {})))
	clusterapi.RegisterHostServer(server, oneLog{file: f})
	go func() { _ = server.Serve(l) }()
	tb.Cleanup(server.Stop)
	conn, err := dial.Open(l.Addr().String(), dial.Fingerprint(certificate), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return clusterapi.NewHostClient(conn)
}
