package execution

import (
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/clusterapi"
)

// sent is a call that keeps what is sent.
type sent struct {
	grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]

	mu     sync.Mutex
	output string
}

func (s *sent) Send(m *clusterapi.ExecResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.output += string(m.GetStdout())
	return nil
}

// TestOutputAtTheDeadline: what was written is sent although the grace was over before
// this process came to read it.
func TestOutputAtTheDeadline(t *testing.T) {
	t.Parallel()
	ours, theirs, err := openTerminal(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for name, f := range map[string]struct{ from, to *os.File }{"terminal": {ours, theirs}, "pipe": {out, in}} {
		if err := f.from.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.to.WriteString("last words"); err != nil {
			t.Fatal(err)
		}
		call := &sent{}
		e := &execution{stream: call}
		e.read(f.from, stdoutOf)
		e.readers.Wait()
		if call.output != "last words" {
			t.Errorf("%s: sent %q, want what was written", name, call.output)
		}
		f.to.Close()
	}
}
