package notice

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/fray-ml/fray/sleep"
)

// Source reports that a host is about to be preempted or maintained.
type Source interface {
	// Next waits until the notice differs from last and returns it; "" is no notice.
	Next(ctx context.Context, last string) (string, error)
}

// File takes a file's first line for the notice: that is how a
// rehearsal preempts a host. An empty file will do.
type File struct {
	Path string
}

var _ Source = File{}

// Window is the time from a notice to the end of its machine that can be counted on: as long
// as Compute Engine gives a preempted one.
const Window = 30 * time.Second

// RetryInterval is the time between two tries to read a notice.
const RetryInterval = 200 * time.Millisecond

// unsaid is the notice of an empty file.
const unsaid = "the host is being preempted"

// Next implements Notices. A file that is empty at one look only is one that is being written.
func (n File) Next(ctx context.Context, last string) (string, error) {
	empty := false // at the look before
	for {
		notice, err := n.read()
		if err == nil && notice != last && (notice != unsaid || empty) {
			return notice, nil
		}
		empty = err == nil && notice == unsaid
		if !sleep.For(ctx, RetryInterval) {
			return "", context.Cause(ctx)
		}
	}
}

func (n File) read() (string, error) {
	data, err := os.ReadFile(n.Path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSpace(line); line != "" {
		return line, nil
	}
	return unsaid, nil
}
