package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/hostdir"
)

// follow goes on at another store, or stays and tries again when the assignment is read next.
func (a *agent) follow(ctx context.Context, location string) {
	a.flush()
	err := become(ctx, a.Config, a.lock, location)
	if !a.lost {
		a.Log.Error("state not followed", "error", err)
	}
	a.lost = true
}

// become replaces this process by the agent of another store, which keeps the
// lock and adopts the task as after any restart. It returns only if that fails.
func become(ctx context.Context, c Config, lock *os.File, location string) error {
	if c.Follow == nil {
		return errors.New("this agent cannot change its store")
	}
	args, err := c.Follow(ctx, location)
	if err != nil {
		return fmt.Errorf("follow the state to %s: %w", location, err)
	}
	if _, err := unix.FcntlInt(lock.Fd(), unix.F_SETFD, 0); err != nil { // survives the exec
		return fmt.Errorf("hand on the lock: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, hostdir.LockFDEnv+"=") })
	env = append(env, hostdir.LockFDEnv+"="+strconv.Itoa(int(lock.Fd())))
	c.Log.Info("following the state", "to", location)
	err = unix.Exec(c.Executable, append([]string{c.Executable}, args...), env)
	unix.CloseOnExec(int(lock.Fd()))
	return fmt.Errorf("start the agent of %s: %w", location, err)
}
