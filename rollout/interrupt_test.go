package rollout

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/terminal"
)

// The first Ctrl-C ends the context for starting, the second that for finishing.
func TestInterruptible(t *testing.T) {
	var stderr bytes.Buffer
	starting, finishing, stop := terminal.New(nil, nil, &stderr).Interruptible(t.Context(), func() string { return finishingSoftly }, leavingAtOnce("destroy"))
	defer stop()
	ctrlC := func(ends context.Context) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ends.Done():
		case <-time.After(5 * time.Minute):
			t.Fatal("Ctrl-C ended nothing")
		}
	}
	ctrlC(starting)
	if finishing.Err() != nil {
		t.Fatal("the first Ctrl-C ended the context for finishing")
	}
	ctrlC(finishing)
	if want := "The next fray destroy picks up"; !strings.Contains(stderr.String(), want) {
		t.Errorf("got %q, want %q in it", stderr.String(), want)
	}
}
