package shim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/schema"
)

// Hook is a command that runs beside the task's before the task is ended.
type Hook struct {
	Path  string   `json:"path"`
	Argv  []string `json:"argv"`
	Env   []string `json:"env"`
	Dir   string   `json:"dir"`
	Nonce string   `json:"nonce"` // in the environment of its processes, as of the task's
	// VarsAt is where Argv takes the variables of the stop, as the options of a container
	// runtime's client, 0: nowhere.
	VarsAt int `json:"vars_at,omitempty"`
	// Missing says why its program cannot be run, "" where it can.
	Missing string `json:"missing,omitempty"`
}

// runningHook is a hook that was started. It is started at most once: nothing but the
// supervisor starts it, which stops its task once.
type runningHook struct {
	result schema.HookResult
	until  time.Time
	pid    int                // and its process group
	status syscall.WaitStatus // once ended is closed
	ended  chan struct{}
}

// errEnded is why a hook does not start whose task has ended by itself.
var errEnded = errors.New("the task has ended")

// startHook starts the hook that the agent asks for, nil where it asks for none, there is no
// time for it, or the command has ended.
func (s *shim) startHook() *runningHook {
	var stop hostdir.StopRecord
	hook := s.spec.Hook
	if hook == nil || record.Read(s.spec.TaskDir.File(hostdir.StopFile), &stop) != nil || stop.Hook == "" {
		return nil
	}
	now := time.Now()
	h := &runningHook{until: stop.HookUntil, ended: make(chan struct{})}
	h.result = schema.HookResult{Stop: stop.Hook, Outcome: schema.HookUnknown, Reason: "its end was not seen", StartedAt: now}
	left := stop.HookUntil.Sub(now)
	why := hook.Missing
	if left <= 0 {
		why = "no time was left for it"
	}
	if why == "" {
		s.recordHook(h)
		s.mark("before_stop begins (%s), for %s at most", stop.Hook, left.Round(time.Second))
		if err := s.forkHook(h, left); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		h.result.Outcome, h.result.Reason, h.result.EndedAt = schema.HookNotStarted, why, now
		s.recordHook(h)
		s.mark("before_stop (%s) did not start: %s", stop.Hook, why)
		return nil
	}
	return h
}

// forkHook starts the hook in a process group of its own, with its output in the task's log.
func (s *shim) forkHook(h *runningHook, left time.Duration) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start before_stop: %w", err)
	}
	defer null.Close()
	output, attr := s.out.command, &syscall.SysProcAttr{Setpgid: true}
	process.DieWithParent(attr)
	vars := []string{
		schema.StopReasonVariable + "=" + string(h.result.Stop),
		schema.StopDeadlineVariable + "=" + strconv.FormatInt(h.until.Unix(), 10),
		schema.StopRemainingVariable + "=" + strconv.FormatFloat(max(0, left.Seconds()), 'f', 1, 64),
	}
	env, argv := slices.Concat(s.spec.Hook.Env, vars), s.spec.Hook.Argv
	if at := s.spec.Hook.VarsAt; at > 0 {
		options := make([]string, 0, 2*len(vars))
		for _, v := range vars {
			options = append(options, "--env", v)
		}
		argv = slices.Concat(argv[:at], options, argv[at:])
	}
	s.mu.Lock() // the hook is reaped only once its process id is known
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	pid, err := syscall.ForkExec(s.spec.Hook.Path, argv, &syscall.ProcAttr{
		Dir: s.spec.Hook.Dir, Env: env, Files: []uintptr{null.Fd(), output.Fd(), output.Fd()}, Sys: attr,
	})
	if err != nil {
		return fmt.Errorf("start before_stop: %w", err)
	}
	h.pid = pid
	s.hook = h
	return nil
}

// reaped takes in that a child was reaped which is not the command.
func (s *shim) reaped(pid int, status syscall.WaitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook != nil && s.hook.pid == pid {
		s.hook.status = status
		close(s.hook.ended)
	}
}

// finishHook ends what is left of the hook and records how it went.
func (s *shim) finishHook(h *runningHook, timedOut bool) {
	s.killHook(h)
	r := &h.result
	r.EndedAt = time.Now()
	switch {
	case timedOut:
		r.Outcome, r.Reason = schema.HookTimedOut, fmt.Sprintf("ended after %s, its time", r.EndedAt.Sub(r.StartedAt).Round(time.Second))
	case h.status.Signaled():
		r.Outcome, r.Reason = schema.HookFailed, "killed by "+unix.SignalName(h.status.Signal())
	case h.status.ExitStatus() != 0:
		r.Outcome, r.Reason = schema.HookFailed, fmt.Sprintf("exit status %d", h.status.ExitStatus())
	default:
		r.Outcome, r.Reason = schema.HookSucceeded, ""
	}
	s.recordHook(h)
	text := fmt.Sprintf("before_stop %s after %s", outcomeWords(r.Outcome), r.EndedAt.Sub(r.StartedAt).Round(10*time.Millisecond))
	if r.Outcome == schema.HookFailed {
		text += ": " + r.Reason
	}
	s.mark("%s", text)
}

// killHook ends the processes of a hook: its group, and what has its environment, wherever it
// went. What hides from that ends with the task.
func (s *shim) killHook(h *runningHook) {
	const rounds = 50
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for range rounds {
		all, err := process.List()
		if err != nil {
			return
		}
		found := false
		for _, p := range all {
			if p.PID == os.Getpid() || p.PID == s.pid {
				continue
			}
			if p.Group == h.pid || process.HasEnvPrefix(p.PID, schema.StopReasonVariable+"=") && process.HasEnv(p.PID, process.NonceEnv+"="+s.spec.Hook.Nonce) {
				found = process.Signal(p.PID, unix.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
		<-again.C
	}
}

// hooking reports whether a hook runs.
func (s *shim) hooking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hook != nil
}

// awaitHook returns once no hook runs any more, which guard sees to: the command has ended
// before it.
func (s *shim) awaitHook() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.hooking() {
		var status syscall.WaitStatus
		if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); err == nil && pid > 0 {
			s.reaped(pid, status)
			continue
		}
		<-tick.C
	}
}

// recordHook records a hook; on a disk without space for that it runs nonetheless.
func (s *shim) recordHook(h *runningHook) {
	if s.host.Gone() {
		return
	}
	r := h.result
	r.Reason = hostdir.Clipped(r.Reason)
	_ = record.Write(s.spec.TaskDir.File(hostdir.HookFile), r)
}

// mark writes a line of fray's own into the task's log.
func (s *shim) mark(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out.command, "fray: "+format+"\n", args...)
}

func outcomeWords(o schema.HookOutcome) string {
	if o == schema.HookTimedOut {
		return "was ended"
	}
	return string(o)
}
