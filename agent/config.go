package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Config is which host an agent serves and how.
type Config struct {
	Store   store.Store // required
	Slice   string      // required
	Host    int         // of the slice, from 0
	Dir     string      // required: the host's directory, made if it is not there
	Address string      // required: how peers reach this host, without a port
	Version string      // of fray
	// Instance is the cloud's name for the machine, which its reports carry.
	Instance string

	// WorkDir is where tasks without a bundle run; "": the host's directory.
	WorkDir string
	// CacheDir keeps uv environments and is shared by all hosts of a
	// machine; "": "cache" in the host's directory.
	CacheDir string
	// Workspace is the one that the slice is of, for its tasks to see; "": "default".
	Workspace string
	// Zone that the host is in, for its tasks to see; "": not known.
	Zone string
	// Executable is started as "EXECUTABLE task-shim"; "": this program.
	Executable string
	// Sealer opens secrets; nil: tasks with secrets fail.
	Sealer schema.Sealer
	// GPUs are those of the machine that are the host's own, by index; nil: as many as a
	// task asks for, from 0.
	GPUs []int
	// Simulated is set where this host is no machine of its own: there is no
	// TPU behind its variables.
	Simulated bool
	// TPUNode is set where the machine is one of a TPU node, whose metadata server
	// describes the TPU to libtpu.
	TPUNode bool
	// End ends what is left on the host and returns.
	End bool
	// Follow returns the flags of an agent of this host at another store, once
	// it has seen that its assignment is there; nil: the agent stays.
	Follow func(ctx context.Context, location string) ([]string, error)
	// RegistryToken returns a password for pulling images from a registry by the
	// machine's own identity, and its user; nil: the container runtime has what
	// it needs. A registry that it knows nothing of gets "".
	RegistryToken func(ctx context.Context, registry string) (user, password string, err error)
	// Notices reports preemption; nil: the file "preempted" in Dir does.
	Notices notice.Source
	// Heartbeat is the time between reports when nothing happens; 0: 2 s.
	Heartbeat time.Duration
	// Log is for people who run the agent; nil: nowhere.
	Log *slog.Logger
}

// validate checks the required fields and fills in the others.
func (c Config) validate() (Config, error) {
	switch {
	case c.Store == nil:
		return c, errors.New("configure agent: no store")
	case c.Slice == "" || c.Host < 0:
		return c, errors.New("configure agent: no slice or host")
	case c.Dir == "" || !filepath.IsAbs(c.Dir):
		return c, fmt.Errorf("configure agent: the host's directory %q is not an absolute path", c.Dir)
	case c.Address == "":
		return c, errors.New("configure agent: no address")
	}
	if c.WorkDir == "" {
		c.WorkDir = c.Dir
	}
	if c.CacheDir == "" {
		c.CacheDir = filepath.Join(c.Dir, "cache")
	}
	if c.Executable == "" {
		exe, err := os.Executable()
		if err != nil {
			return c, fmt.Errorf("configure agent: find this program: %w", err)
		}
		c.Executable = exe
	}
	if c.Notices == nil {
		c.Notices = notice.File{Path: filepath.Join(c.Dir, hostdir.PreemptedFile)}
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 2 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("slice", c.Slice, "host", c.Host)
	return c, nil
}
