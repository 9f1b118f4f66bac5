package agent

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/fray-ml/fray/sleep"
)

// Notices tells an agent that its host is about to be preempted or maintained.
type Notices interface {
	// Next waits until the notice differs from last and returns it; "" is no notice.
	Next(ctx context.Context, last string) (string, error)
}

// fileNotices takes a file's first line for the notice: that is how a
// rehearsal preempts a host. An empty file will do.
type fileNotices struct {
	path string
}

var _ Notices = fileNotices{}

// noticeInterval is how often the file is looked for.
const noticeInterval = 200 * time.Millisecond

// Next implements Notices.
func (n fileNotices) Next(ctx context.Context, last string) (string, error) {
	for {
		notice, err := n.read()
		if err == nil && notice != last {
			return notice, nil
		}
		if !sleep.For(ctx, noticeInterval) {
			return "", context.Cause(ctx)
		}
	}
}

func (n fileNotices) read() (string, error) {
	data, err := os.ReadFile(n.path)
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
	return "the host is being preempted", nil
}
