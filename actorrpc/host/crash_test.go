package host

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// envDying has TestMain be a server that kills itself instead of running tests.
const envDying = "FRAY_TEST_DYING"

type dyingActor struct{}

func (dyingActor) Value(n int) int { return n }

// Die kills the process. A signal takes a moment.
func (dyingActor) Die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func dying() {
	s, err := New(Config{})
	if err == nil {
		_, err = s.Register("dying", dyingActor{}, Options{})
	}
	if err == nil {
		err = s.Start(context.Background())
	}
	fmt.Println(s.Address(), err)
	select {}
}

// Results that a method returned before its process is killed arrive, though the actor had
// the next call to begin at once.
func TestResultsFromBeforeACrashArrive(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envDying+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Scan()
	var address string
	if _, err := fmt.Sscan(lines.Text(), &address); err != nil {
		t.Fatalf("the server reports %q", lines.Text())
	}
	raw, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Write([]byte(wire.Preface)); err != nil {
		t.Fatal(err)
	}
	conn := wire.NewConn(raw, wire.MaxFrame)
	if err := conn.Send(&wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello("dying's caller")}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	const before, after = 100, 100 // results that a system takes though the client reads none
	for seq := uint64(1); seq <= before+1+after; seq++ {
		call := &wire.Call{Actor: "dying", Method: "value", Seq: seq, Args: []byte{0x92, 0x91, 7, 0x80}}
		if seq == before+1 {
			call.Method, call.Args = "die", []byte{0x92, 0x90, 0x80}
		}
		if err := conn.Queue(&wire.Frame{Kind: &wire.Frame_Call{Call: call}}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	got := 0
	for {
		f, _, err := conn.Receive()
		if err != nil {
			break // it has died
		}
		if f.GetReply() != nil {
			got++
		}
	}
	if got != before {
		t.Errorf("%d results arrived of the %d that were returned", got, before)
	}
}
