package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/schema"
)

// record is slice.json: the one word on what a slice is.
type record struct {
	Spec      schema.SliceSpec `json:"spec"`
	Addresses []string         `json:"addresses"`      // by host
	GPUs      []int            `json:"gpus,omitempty"` // of this machine, that are the slice's own
	CreatedAt time.Time        `json:"created_at"`
	// DeletingSince is when the slice was told to go; it never comes back.
	DeletingSince time.Time `json:"deleting_since,omitzero"`
	// KillAt is when what is then still alive is killed.
	KillAt time.Time `json:"kill_at,omitzero"`
}

func (r *record) deleting() bool { return !r.DeletingSince.IsZero() }

// slice is the directory of one slice.
type slice struct {
	name string
	dir  string
}

const recordFile = "slice.json"

// Files of a host that the agent shares with its provider.
const (
	agentLockFile = "agent.lock"
	taskLockFile  = "task.lock"
	agentLogFile  = "agent.log"
	dirtyFile     = "dirty" // there may be processes that only an agent can find
)

func (s slice) hostsDir() string { return filepath.Join(s.dir, "hosts") }

func (s slice) host(n int) host {
	return host{dir: filepath.Join(s.hostsDir(), strconv.Itoa(n))}
}

// read returns the slice's record; nil when there is none.
func (s slice) read() (*record, error) {
	path := filepath.Join(s.dir, recordFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read slice: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read slice: %s is damaged; end the slice's processes and remove its directory to go on: %w", path, err)
	}
	if r.Spec.Name != s.name || len(r.Addresses) != r.Spec.Hosts {
		return nil, fmt.Errorf("read slice: %s is not the record of %s; end the slice's processes and remove its directory to go on", path, s.name)
	}
	return &r, nil
}

// write replaces the slice's record; after a crash it is the old or the new one.
func (s slice) write(r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record slice: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(s.dir, recordFile), data, 0o600); err != nil {
		return fmt.Errorf("record slice: %w", err)
	}
	return nil
}
