package follow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// logHost is a host that sends what it is told to, as the log of each task.
type logHost struct {
	clusterapi.UnimplementedHostServer
	more chan string // "" ends the log

	mu     sync.Mutex
	offset []int64 // that were asked for
}

func (h *logHost) Logs(r *clusterapi.LogsRequest, to grpc.ServerStreamingServer[clusterapi.LogsResponse]) error {
	h.mu.Lock()
	h.offset = append(h.offset, r.GetOffset())
	h.mu.Unlock()
	for {
		select {
		case <-to.Context().Done():
			return to.Context().Err()
		case text := <-h.more:
			if text == "" {
				return nil
			}
			if err := to.Send(&clusterapi.LogsResponse{Data: []byte(text)}); err != nil {
				return err
			}
		}
	}
}

// screen is what was printed.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(data)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until a screen shows something.
func (s *screen) shows(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for tick := time.Tick(5 * time.Millisecond); s.String() != want; {
		select {
		case <-deadline:
			t.Fatalf("the screen shows %q, want %q", s.String(), want)
		case <-tick:
		}
	}
}

// followedLog is a task's log that is followed, with its host and its store.
type followedLog struct {
	host    *logHost
	server  *grpc.Server
	store   *store.Dir
	screen  *screen
	printer *logPrinter
	stream  *logStream
}

func newFollowed(t *testing.T, q Query) *followedLog {
	t.Helper()
	s, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &followedLog{host: &logHost{more: make(chan string)}, store: s, screen: &screen{}}
	certificate, err := dial.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.server = grpc.NewServer(grpc.Creds(dial.ServerCredentials(certificate, func(net.Addr, error) {})))
	clusterapi.RegisterHostServer(f.server, f.host)
	go func() { _ = f.server.Serve(l) }()
	t.Cleanup(f.server.Stop)
	report, err := json.Marshal(state.HostReport{Slice: "s", API: l.Addr().String(), Fingerprint: dial.Fingerprint(certificate)})
	if err != nil {
		t.Fatal(err)
	}
	f.put(t, store.HostKey("s", 0), string(report))
	f.printer = newLogPrinter(&terminal.Terminal{Stdout: f.screen}, s, q)
	f.printer.live = &liveLogs{
		printer: f.printer, loaded: &configuration.Loaded{Stack: &stack.Stack{Store: s, Clock: store.NewLeaderClock(s)}}, conns: map[hostAt]*grpc.ClientConn{},
		signer: clusterkeys.NewCommand(s, "stack", "ann"),
	}
	f.printer.live.ctx, f.printer.live.cancel = context.WithCancel(t.Context())
	t.Cleanup(f.printer.live.close)
	f.stream = f.printer.stream(logKey{job: schema.Address{Kind: schema.KindJob, Name: "a"}, attempt: 1})
	f.stream.id, f.stream.running = "id", true
	f.stream.place = &state.Task{Slice: "s", State: schema.TaskRunning}
	return f
}

func (f *followedLog) put(t *testing.T, key, data string) {
	t.Helper()
	if _, err := f.store.Put(t.Context(), key, []byte(data), store.Any); err != nil {
		t.Fatal(err)
	}
}

// ships puts the log as it is so far into the store.
func (f *followedLog) ships(t *testing.T, log string) {
	t.Helper()
	f.put(t, store.LogKey("id", 1, 0, 0), log)
}

func (f *followedLog) drain(t *testing.T) {
	t.Helper()
	if err := f.printer.drain(t.Context(), false); err != nil {
		t.Fatal(err)
	}
}

// What is there comes from the store, what follows from the host, line by line;
// and from the store again when the host is gone, with nothing lost or twice.
func TestLogsComeFromTheHost(t *testing.T) {
	t.Parallel()
	f := newFollowed(t, Query{Tail: 1, Follow: true})
	f.stream.prefix = "job.a/0 | "
	f.ships(t, "old\nnew\n")
	f.drain(t)
	f.screen.shows(t, "job.a/0 | new\n")
	f.printer.live.listen(f.printer.sorted())
	f.host.more <- "th"
	f.host.more <- "ree\nfo"
	want := "job.a/0 | new\njob.a/0 | three\n"
	f.screen.shows(t, want)
	if len(f.host.offset) != 1 || f.host.offset[0] != 8 {
		t.Errorf("the host was asked from %v, want [8]", f.host.offset)
	}
	f.drain(t) // the store has nothing to say meanwhile
	f.server.Stop()
	f.ships(t, "old\nnew\nthree\nfour\nfive")
	f.printer.live.finish()
	f.drain(t)
	f.printer.flush()
	f.screen.shows(t, want+"job.a/0 | four\njob.a/0 | five\n")
}

// A host that has sent all is not asked again.
func TestLogsOfAnEndedTask(t *testing.T) {
	t.Parallel()
	f := newFollowed(t, Query{Tail: -1, Follow: true})
	f.drain(t)
	f.printer.live.listen(f.printer.sorted())
	f.host.more <- "all\n"
	f.host.more <- ""
	f.printer.live.running.Wait()
	f.printer.live.listen(f.printer.sorted())
	f.printer.live.finish()
	f.ships(t, "all\n")
	f.drain(t)
	f.screen.shows(t, "all\n")
	if len(f.host.offset) != 1 {
		t.Errorf("the host was asked from %v, want once", f.host.offset)
	}
}

// On a terminal each task has its colour, always the same.
func TestLogColors(t *testing.T) {
	p := &logPrinter{colored: true}
	seen := map[string]bool{}
	for i := range 20 {
		painted := p.paint(fmt.Sprintf("job.a/%d |", i))
		color, rest, _ := strings.Cut(painted, "m")
		seen[color] = true
		if want := fmt.Sprintf("job.a/%d |\x1b[0m", i); rest != want || painted != p.paint(fmt.Sprintf("job.a/%d |", i)) {
			t.Errorf("painted %q", painted)
		}
	}
	if len(seen) < 5 {
		t.Errorf("20 tasks have %d colours", len(seen))
	}
	if plain := (&logPrinter{}).paint("x |"); plain != "x |" {
		t.Errorf("without colours it is %q", plain)
	}
}
