// Package hosts runs the emulator's machines: real processes on this machine in
// place of hosts on Google Cloud.
//
// A machine has a directory for a disk, a metadata server, and where the system
// allows it a loopback address of its own. It boots by running the startup
// script of its metadata, as the real ones do, and so comes to run the real
// agent. Nothing in it knows that it is emulated but by the variables that
// Google's own libraries and the script read.
//
// It leaves out what a machine is made of: there is no TPU, and all machines share
// this one's users, files and programs. When and which machines run is
// package cloud's to decide. Start with [New].
package hosts

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// Config states where the machines live.
type Config struct {
	// Dir keeps a directory for each machine; made if need be, and locked. What
	// an emulator that died has left running there is ended. Required.
	Dir string
	// Endpoint is the emulator's, "http://HOST:PORT". Required.
	Endpoint string
	// Storage is what machines have in STORAGE_EMULATOR_HOST; "": Endpoint.
	Storage string
	// Env are more variables of every process of every machine, "NAME=value".
	Env []string
	// Log receives problems; nil: they are dropped.
	Log *slog.Logger
}

// Hosts are the machines of one emulator. Its methods may be called concurrently.
type Hosts struct {
	config Config
	lock   *os.File

	mu       sync.Mutex
	machines map[string]*machine // by id, until they are removed
}

var _ cloud.Hosts = (*Hosts)(nil)

// New makes a place for machines, without any.
func New(c Config) (*Hosts, error) {
	if c.Endpoint == "" || !filepath.IsAbs(c.Dir) {
		return nil, fmt.Errorf("emulate hosts: want an endpoint and an absolute directory, got %q and %q", c.Endpoint, c.Dir)
	}
	if c.Storage == "" {
		c.Storage = c.Endpoint
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("emulate hosts: %w", err)
	}
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("emulate hosts: %w", err)
	}
	h := &Hosts{config: c, lock: lock, machines: map[string]*machine{}}
	if err := powerOff(diskMark(c.Dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("emulate hosts: %w", err), lock.Close())
	}
	return h, nil
}

// Start implements cloud.Hosts.
func (h *Hosts) Start(m cloud.Machine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	there := h.machines[m.ID]
	if there == nil {
		there = newMachine(h.config, m)
		h.machines[m.ID] = there
	}
	if err := there.start(m); err != nil {
		h.config.Log.Error("emulated machine not started", "machine", m.ID, "error", err)
	}
}

// Notice implements cloud.Hosts.
func (h *Hosts) Notice(id string, event cloud.Event) {
	if m := h.find(id); m != nil {
		m.notice(event)
	}
}

// Stop implements cloud.Hosts: when it returns, no process of the machine is left.
func (h *Hosts) Stop(id string) {
	if m := h.find(id); m != nil {
		if err := m.stop(); err != nil {
			h.config.Log.Error("emulated machine not stopped", "machine", id, "error", err)
		}
	}
}

// Remove implements cloud.Hosts.
func (h *Hosts) Remove(id string) {
	h.mu.Lock()
	m := h.machines[id]
	delete(h.machines, id)
	h.mu.Unlock()
	if m == nil {
		return
	}
	if err := errors.Join(m.stop(), os.RemoveAll(m.dir)); err != nil {
		h.config.Log.Error("emulated machine not removed", "machine", id, "error", err)
	}
}

// Close powers every machine off. Their disks stay.
func (h *Hosts) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, m := range h.machines {
		errs = append(errs, m.stop())
	}
	clear(h.machines)
	return errors.Join(append(errs, h.lock.Close())...)
}

// GuestAttributes are what a machine has set since it was switched
// on, by "namespace/key"; nil for one that is off. "fray/status" is how far it
// has come.
func (h *Hosts) GuestAttributes(id string) map[string]string {
	if m := h.find(id); m != nil {
		return m.guestAttributes()
	}
	return nil
}

// Disk is the directory of a machine, for tests that read it; "" if there is none.
func (h *Hosts) Disk(id string) string {
	if m := h.find(id); m != nil {
		return m.dir
	}
	return ""
}

func (h *Hosts) find(id string) *machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machines[id]
}
