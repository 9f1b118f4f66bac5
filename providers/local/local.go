// Package local is a provider whose slices are processes on this machine: a
// slice of N hosts is N detached agents, each with a directory and, where the
// system allows it, a loopback address of its own.
//
// What it knows is in files, below one root directory, so that any number of
// short-lived processes may use it at the same time:
//
//	slices/<name>/slice.json     what was asked for, by whom, and whether it is going
//	slices/<name>/hosts/<n>/     one host; its agent holds the lock agent.lock,
//	                             and what supervises its task holds task.lock
//	addresses/<address>          the slice that has an address
//	gpus/<index>                 the slice that has a GPU of this machine
//	locks/<name>.lock            held while a slice is being changed
//
// Liveness is a held lock, never a pid. A process that is suspended in the middle of a
// change (Ctrl-Z, SIGSTOP) loses its locks to the next one; see hold.go.
//
// It limits no CPU and no memory: how much fits is plan's to decide from the
// provider block.
//
// Start with [New] and record.go.
package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// Config is where the slices are and what their agents get.
type Config struct {
	// Root is the directory of all slices, absolute; made when needed.
	Root string
	// Executable is started as "EXECUTABLE agent FLAGS"; "": this program.
	Executable string
	// StoreLocation, KeyFile, WorkDir, CacheDir and Workspace are handed to the agents.
	// StoreLocation is required, "" leaves any other to the agent.
	StoreLocation string
	KeyFile       string
	WorkDir       string
	CacheDir      string
	Workspace     string // "": "default"
	// DeleteGrace is what a slice without a task gets to end by itself
	// before it is killed, and one with a task beyond that task's grace; 0: 10 s.
	DeleteGrace time.Duration
}

// Provider makes slices of processes on this machine.
type Provider struct {
	config Config
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Checker  = (*Provider)(nil)
)

// New returns the provider of the slices below c.Root. It touches nothing.
func New(c Config) (*Provider, error) {
	switch {
	case !filepath.IsAbs(c.Root):
		return nil, fmt.Errorf("configure local provider: root %q is not an absolute path", c.Root)
	case c.StoreLocation == "":
		return nil, errors.New("configure local provider: no store for the agents")
	}
	if c.Executable == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("configure local provider: find this program: %w", err)
		}
		c.Executable = exe
	}
	if c.DeleteGrace == 0 {
		c.DeleteGrace = 10 * time.Second
	}
	return &Provider{config: c}, nil
}

func (p *Provider) slices() string { return filepath.Join(p.config.Root, "slices") }

func (p *Provider) slice(name string) slice {
	return slice{name: name, dir: filepath.Join(p.slices(), name)}
}

// classified wraps an error once, at the provider's boundary.
func classified(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var known *kindError
	kind := schema.ErrorUnavailable
	switch {
	case errors.As(err, &known):
		kind = known.kind
	case errors.Is(err, os.ErrPermission):
		kind = schema.ErrorPermission
	}
	return &providers.Error{Kind: kind, Op: op, Name: name, Err: err}
}

// kindError is an error whose kind is known where it arises.
type kindError struct {
	kind schema.ErrorKind
	err  error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

func failf(kind schema.ErrorKind, format string, args ...any) error {
	return &kindError{kind: kind, err: fmt.Errorf(format, args...)}
}

// checkName keeps slice names inside the root and apart from hidden files.
func checkName(name string) error {
	if name == "" || len(name) > 63 {
		return failf(schema.ErrorInvalid, "the name %q is not 1 to 63 bytes long", name)
	}
	for _, c := range name {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return failf(schema.ErrorInvalid, "the name %q has other characters than a-z, 0-9 and -", name)
		}
	}
	return nil
}

func checkSpec(spec schema.SliceSpec) error {
	if err := checkName(spec.Name); err != nil {
		return err
	}
	if spec.Stack == "" || spec.Hosts < 1 {
		return failf(schema.ErrorInvalid, "a slice needs a stack's mark and at least one host")
	}
	return nil
}
