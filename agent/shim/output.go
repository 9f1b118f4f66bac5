package shim

import (
	"errors"
	"fmt"
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

// output copies what a command writes to its log, its secrets hidden and dated.
type output struct {
	command *os.File // the end of the pipe that the command writes to
	pipe    *os.File
	log     *datedLog
	done    chan struct{} // closed once all is copied
}

// copyOutput begins to copy to a log, which it closes at the end.
func copyOutput(log *datedLog, secrets []string) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the pipe of its output: %w", err)
	}
	m := &output{command: w, pipe: r, log: log, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.copy(mask.New(secrets))
	}()
	return m, nil
}

// copy copies until no process has the command's end of the pipe.
func (m *output) copy(secrets *mask.Set) {
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
		if n > 0 {
			m.log.arrived(time.Now(), masked.Held())
			// The log takes everything, see datedLog.
			_, _ = masked.Write(buffer[:n])
		}
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
func (m *output) finish() error {
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
