package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/agent/hostapi"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/identities"
	"github.com/fray-ml/fray/agent/live"
	"github.com/fray-ml/fray/agent/notice"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// A host serves packed tasks: slices of one host that have a part of this machine.
// Each is served as the host itself is, by an agent in the same process, with a
// directory, an assignment and a report of its own. The directory is there for as
// long as the packed task is served: an agent that starts finds all of them again.

// packedDir holds the directories of a host's packed tasks, by their slice.
const packedDir = "packed"

// packedHeartbeat is the time between two reports of a packed task to which nothing
// happens: the reports of its host show that the host lives.
const packedHeartbeat = 10 * time.Minute

// packedTasks serves the packed tasks of a host. Its fields are its host's loop's alone.
type packedTasks struct {
	host    *agent
	notice  *notice.Status[string]
	ctx     context.Context // of those that are served; ends when they are to end
	stop    context.CancelFunc
	running map[string]*packedTask
	ended   chan string // those that are served no more
	workers sync.WaitGroup
}

// packedTask is one that is being served.
type packedTask struct {
	stop    context.CancelFunc
	leaving bool
}

func newPackedTasks(host *agent) *packedTasks {
	return &packedTasks{
		host: host, notice: notice.NewStatus(host.report.Notice),
		running: map[string]*packedTask{}, ended: make(chan string), stop: func() {},
	}
}

// close ends all packed tasks and waits for them; their host's work has ended.
func (p *packedTasks) close() {
	p.stop()
	p.workers.Wait()
}

// open takes over the packed tasks that an earlier agent served.
func (p *packedTasks) open(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.ctx, p.stop = context.WithCancel(ctx)
	entries, err := os.ReadDir(p.host.dir.File(packedDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list packed tasks: %w", err)
	}
	for _, e := range entries {
		if isPackedName(e.Name()) {
			p.serve(e.Name())
		}
	}
	p.publish()
	return nil
}

// isPackedName reports whether a name is a slice's: it becomes that of a directory.
func isPackedName(name string) bool {
	return name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// want serves the packed tasks that are to be on this host, and ends all others.
func (p *packedTasks) want(all []state.PackedTask) {
	if p == nil {
		return
	}
	wanted := map[string]bool{}
	changed := false
	for _, g := range all {
		if g.Host != p.host.Host || !isPackedName(g.Slice) {
			continue
		}
		wanted[g.Slice] = true
		if p.running[g.Slice] == nil {
			p.serve(g.Slice)
			changed = true
		}
	}
	for name, packed := range p.running {
		if !wanted[name] && !packed.leaving {
			packed.leaving = true
			packed.stop()
		}
	}
	if changed {
		p.publish()
	}
}

// publish puts the packed tasks into the host's report. A packed task that is asked
// to do something was in it before.
func (p *packedTasks) publish() {
	names := make([]string, 0, len(p.running))
	for name := range p.running {
		names = append(names, name)
	}
	slices.Sort(names)
	p.host.report.PackedTasks = names
	p.host.publish()
}

// serve runs the agent of a packed task. One that fails is tried again as long as it
// is wanted: its command may still run.
func (p *packedTasks) serve(name string) {
	ctx, stop := context.WithCancel(p.ctx)
	p.running[name] = &packedTask{stop: stop}
	if err := p.host.dir.MarkDirty(); err != nil {
		p.host.Log.Error("processes of a packed task not marked", "error", err)
	}
	config, work, shared := p.config(name), p.host.work, p.host.machine
	p.workers.Go(func() {
		defer stop()
		for {
			err := servePacked(ctx, config, shared)
			if err == nil {
				break
			}
			config.Log.Error("packed task not served", "error", err)
			if !sleep.For(work, packedRetry) {
				break
			}
		}
		shared.api.Live.Drop(name)
		select {
		case p.ended <- name:
		case <-work.Done():
		}
	})
}

// packedRetry is the time between two tries to serve a packed task.
const packedRetry = time.Second

// servePacked is the agent of a packed task; it returns once ctx has ended and with
// it the task.
func servePacked(ctx context.Context, c Config, shared *machine) error {
	dir, err := hostdir.Open(c.Dir)
	if err != nil {
		return err
	}
	return serve(ctx, c, dir, place{shared: shared})
}

// config is that of a packed task: it shares what belongs to the machine.
func (p *packedTasks) config(name string) Config {
	c := p.host.Config
	if c.WorkDir == c.Dir {
		c.WorkDir = ""
	}
	c.Slice, c.Host, c.Dir = name, 0, filepath.Join(c.Dir, packedDir, name)
	if c.WorkDir == "" {
		c.WorkDir = c.Dir
	}
	c.Heartbeat, c.Notices, c.Follow = packedHeartbeat, p.notice, nil
	c.Log = c.Log.With("packed", name)
	return c
}

// left forgets a packed task that is served no more. Its directory goes first, so
// that a reader of the report which lacks it can count on that.
func (p *packedTasks) left(name string) {
	packed := p.running[name]
	if packed == nil {
		return
	}
	if !packed.leaving && p.ctx.Err() == nil { // another program removed its directory
		p.serve(name)
		return
	}
	if packed.leaving {
		if err := os.RemoveAll(filepath.Join(p.host.dir.File(packedDir), name)); err != nil {
			p.host.Log.Error("directory of a packed task not removed", "packed", name, "error", err)
		}
	}
	delete(p.running, name)
	p.publish()
}

// empty reports whether no packed task is served.
func (p *packedTasks) empty() bool { return p == nil || len(p.running) == 0 }

// endings are the packed tasks that are served no more, for left.
func (p *packedTasks) endings() <-chan string {
	if p == nil {
		return nil
	}
	return p.ended
}

// noticed passes on that the host is to be preempted.
func (p *packedTasks) noticed(text string) {
	if p != nil {
		p.notice.Set(text)
	}
}

// place is what an agent serves: a host, by whose lock it is the only one to do so,
// or a packed task, which shares the machine of its host.
type place struct {
	lock   *os.File
	shared *machine // nil for a host
}

// machine is what a host shares with its packed tasks.
type machine struct {
	api        *hostapi.API
	identities *identities.Keeper
	link       *live.Link // to the controller; nil: the store is the only way
}

func openMachine(c Config, dir *hostdir.Dir, memory *hostdir.State, keys *hostdir.Keys) *machine {
	m := &machine{
		api:        hostapi.Open(hostapi.Config{Store: c.Store, Slice: c.Slice, Address: c.Address, Dir: dir, State: memory, Log: c.Log}),
		identities: identities.New(c.Store, c.Log),
	}
	if c.Store.WriteInterval() > 0 { // a directory is as fast, and costs nothing
		m.link = live.Open(live.Config{
			Store: c.Store, Identity: live.Identity{Slice: c.Slice, Host: c.Host, Key: keys.Private()}, Stack: m.api.Stack,
			Belongs: m.api.SetStack, Authorities: m.identities.Push, Log: c.Log,
		})
		m.api.Relay(m.link.Relay())
	}
	return m
}

// close ends all calls, what they started, and the keeping of identities.
func (m *machine) close() {
	m.api.Stop()
	m.identities.Stop()
}
