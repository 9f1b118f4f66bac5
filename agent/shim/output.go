package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fray-ml/fray/agent/mask"
)

const (
	// settleAfter is how long a command must be quiet until the end of its
	// output is shown that may be the beginning of a secret, see mask.Writer.
	settleAfter = 200 * time.Millisecond
	// outputPatience is how long the end of a command waits for a process that
	// is none of its descendants and still has its output open.
	outputPatience = 2 * time.Second
)

// maskedOutput copies what a command writes to its log, its secrets hidden.
type maskedOutput struct {
	command *os.File // the end of the pipe that the command writes to
	pipe    *os.File
	log     *lossyLog
	done    chan struct{} // closed once all is copied
}

// maskOutput begins to copy to a log, which it closes at the end.
func maskOutput(log *os.File, secrets []string) (*maskedOutput, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the pipe of its output: %w", err)
	}
	m := &maskedOutput{command: w, pipe: r, log: &lossyLog{file: log}, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.copy(mask.New(secrets))
	}()
	return m, nil
}

// copy copies until no process has the command's end of the pipe.
func (m *maskedOutput) copy(secrets *mask.Set) {
	masked, buffer := mask.NewWriter(secrets, m.log), make([]byte, 64<<10)
	for quiet := false; ; {
		var until time.Time
		if masked.Pending() && !quiet {
			until = time.Now().Add(settleAfter)
		}
		err := m.pipe.SetReadDeadline(until)
		var n int
		if err == nil {
			n, err = m.pipe.Read(buffer)
		}
		quiet = errors.Is(err, os.ErrDeadlineExceeded)
		// The log takes everything, see lossyLog.
		_, _ = masked.Write(buffer[:n])
		switch {
		case quiet:
			_ = masked.Settle()
		case err != nil: // the end, or there will be no more
			_ = masked.Flush()
			m.log.close()
			return
		}
	}
}

// finish returns once all that the command wrote is in its log. Nothing that it
// started may be left.
func (m *maskedOutput) finish() error {
	err := m.command.Close()
	patience := time.NewTimer(outputPatience)
	defer patience.Stop()
	select {
	case <-m.done:
	case <-patience.C:
	}
	err = errors.Join(err, m.pipe.Close()) // ends the copy
	<-m.done
	return err
}

// lossyLog is a log that takes everything: what a full disk has no space for is
// lost, and the log states that as soon as there is space. A command does not
// stand still because of its log.
type lossyLog struct {
	file *os.File
	lost int // bytes, that the log does not state yet
	why  error
}

var _ io.Writer = (*lossyLog)(nil)

func (l *lossyLog) Write(p []byte) (int, error) {
	l.note()
	if l.lost > 0 {
		l.lost += len(p)
		return len(p), nil
	}
	if n, err := l.file.Write(p); err != nil {
		l.lost, l.why = len(p)-n, err
	}
	return len(p), nil
}

// note writes how much is lost.
func (l *lossyLog) note() {
	if l.lost == 0 {
		return
	}
	note := fmt.Sprintf("\nfray: %d bytes of output are lost: %v\n", l.lost, l.why)
	if _, err := l.file.WriteString(note); err == nil {
		l.lost = 0
	}
}

// close ends the log. What could not be written by now cannot be stated either.
func (l *lossyLog) close() {
	l.note()
	_ = l.file.Close()
}
