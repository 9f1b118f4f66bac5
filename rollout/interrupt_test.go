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

// The first Ctrl-C ends soft, the second hard.
func TestInterruptible(t *testing.T) {
	var stderr bytes.Buffer
	soft, hard, stop := terminal.New(nil, nil, &stderr).Interruptible(t.Context(), func() string { return finishingSoftly }, leavingAtOnce("destroy"))
	defer stop()
	ctrlC := func(ends context.Context) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ends.Done():
		case <-time.After(2 * time.Minute):
			t.Fatal("Ctrl-C ended nothing")
		}
	}
	ctrlC(soft)
	if hard.Err() != nil {
		t.Fatal("the first Ctrl-C ended hard")
	}
	ctrlC(hard)
	if want := "The next fray destroy picks up"; !strings.Contains(stderr.String(), want) {
		t.Errorf("got %q, want %q in it", stderr.String(), want)
	}
}
