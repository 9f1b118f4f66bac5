package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/status"
	"github.com/fray-ml/fray/terminal"
)

// Measurement is what is to be measured, and of which task.
type Measurement struct {
	Task    int
	Host    int // the first task on host N of a slice; -1: Task counts
	Profile *clusterapi.Profile
}

// Measured is what a host sent of a task.
type Measured struct {
	Job           schema.Address
	JobID         string
	Attempt, Task int
	Sent          []byte
}

// maxSent bounds what a host may send, in bytes.
const maxSent = 256 << 20

// Measure has the host of a task measure it. The host's messages go to standard error. The first
// Ctrl-C ends the measuring early, the second one the call.
func Measure(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, addr schema.Address, m Measurement) (Measured, error) {
	var out Measured
	view, err := status.Read(ctx, l)
	if err != nil {
		return out, err
	}
	if out.Job, err = theJob(view.Doc, addr, profileVerb); err != nil {
		return out, err
	}
	job := view.Doc.Jobs[out.Job]
	if m.Host >= 0 {
		if m.Task, err = taskOnHost(job, out.Job, m.Host); err != nil {
			return out, err
		}
	}
	t, err := runningTask(job, out.Job, m.Task)
	if err != nil {
		return out, err
	}
	link, err := toHost(ctx, l, t)
	if err != nil {
		return out, err
	}
	defer link.close()
	sent := &bounded{most: maxSent}
	s := &execSession{
		terminal: terminal.New(strings.NewReader(""), sent, a.Stderr), link: link, verb: profileVerb,
		start: &clusterapi.ExecStart{JobId: job.ID, Task: int32(m.Task), Profile: m.Profile},
	}
	code, err := s.run(ctx)
	if reply, ok := errors.AsType[*replyError](err); ok && reply.reply.Code() == codes.InvalidArgument {
		err = fmt.Errorf("%w; the agent of that host may be older than fray profile: fray apply brings this version to new slices", err)
	}
	if err == nil && code != 0 {
		err = &terminal.Exit{Code: code}
	}
	out.JobID, out.Attempt, out.Task, out.Sent = job.ID, job.Last().Number, m.Task, sent.data.Bytes()
	return out, err
}

// taskOnHost is the first task of the last attempt on a host, by its number within a slice.
func taskOnHost(j *state.Job, addr schema.Address, host int) (int, error) {
	if last := j.Last(); last != nil && !j.Status.Ended() {
		var hosts []string
		for i, t := range last.Tasks {
			if t.Host == host {
				return i, nil
			}
			hosts = append(hosts, fmt.Sprint(t.Host))
		}
		return 0, fmt.Errorf("%s has no task on a host %d; its tasks are on hosts %s", addr, host, strings.Join(hosts, ", "))
	}
	return 0, nil // runningTask knows why it does not run
}

// bounded keeps what is written to it, up to a size.
type bounded struct {
	data bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.data.Len()+len(p) > b.most {
		return 0, fmt.Errorf("the host sends more than %d MiB; choose a shorter duration or a lower rate", b.most>>20)
	}
	return b.data.Write(p)
}
