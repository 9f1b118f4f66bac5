package notices

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
)

// run gives a notice to a program on its standard input. What the program prints is not
// kept: nothing is known of what is in it.
func (s *Sender) run(ctx context.Context, to *schema.CommandReceiver, sent *notice.Notice) *Failure {
	body, failure := encode(sent)
	if failure != nil {
		return failure
	}
	words := make([]string, len(to.Command))
	for i, word := range to.Command {
		if words[i], failure = s.open(word); failure != nil {
			return failure
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.command)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdin = bytes.NewReader(append(body, '\n'))
	// Of a group of its own, so that what it has started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Failure{Cause: notice.CauseTimeout, Text: fmt.Sprintf("its command did not end within %s and was ended", s.command)}
	case ctx.Err() != nil:
		return &Failure{Cause: notice.CauseCanceled, Text: "the delivery was cut short"}
	case ended && exit.ExitCode() >= 0:
		return &Failure{Cause: notice.CauseCommand, Code: exit.ExitCode(), Text: fmt.Sprintf("its command exited with status %d", exit.ExitCode())}
	case ended:
		return &Failure{Cause: notice.CauseCommand, Text: "its command was ended by a signal"}
	case errors.Is(err, exec.ErrNotFound):
		return &Failure{Cause: notice.CauseCommand, Text: "its command is not found on this machine"}
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // it ended well, and left a process behind that holds its output
	}
	return &Failure{Cause: notice.CauseCommand, Text: "its command cannot be started"}
}
