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

	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// A host serves guests: slices of one host that have a part of this machine. Each
// is served as the host itself is, by an agent in the same process, with a
// directory, an assignment and a report of its own. The directory is there for as
// long as the guest is served: an agent that starts finds all of them again.

// guestsDir holds the directories of a host's guests, by their slice.
const guestsDir = "guests"

// guestHeartbeat is the time between two reports of a guest to which nothing
// happens: that its host lives, that one's reports say.
const guestHeartbeat = 10 * time.Minute

// lodge serves the guests of a host. Its fields are its host's loop's alone.
type lodge struct {
	host    *agent
	notice  *board[string]
	offer   *board[offer]
	ctx     context.Context // of those that are served; ends when they are to end
	stop    context.CancelFunc
	running map[string]*lodger
	ended   chan string // guests that are served no more
	workers sync.WaitGroup
}

// lodger is a guest that is being served.
type lodger struct {
	stop    context.CancelFunc
	leaving bool
}

func newLodge(host *agent) *lodge {
	return &lodge{
		host: host, notice: newBoard(host.report.Notice), offer: newBoard(offer{}),
		running: map[string]*lodger{}, ended: make(chan string), stop: func() {},
	}
}

// close ends all guests and waits for them; their host's work has ended.
func (l *lodge) close() {
	l.stop()
	l.workers.Wait()
}

// open takes over the guests that an earlier agent served.
func (l *lodge) open(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.ctx, l.stop = context.WithCancel(ctx)
	entries, err := os.ReadDir(l.host.dir.file(guestsDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list guests: %w", err)
	}
	for _, e := range entries {
		if isGuestName(e.Name()) {
			l.serve(e.Name())
		}
	}
	l.tell()
	return nil
}

// isGuestName reports whether a name is a slice's: it becomes that of a directory.
func isGuestName(name string) bool {
	return name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// want serves the guests that are to be on this host, and ends all others.
func (l *lodge) want(guests []state.PackedTask) {
	if l == nil {
		return
	}
	wanted := map[string]bool{}
	changed := false
	for _, g := range guests {
		if g.Host != l.host.Host || !isGuestName(g.Slice) {
			continue
		}
		wanted[g.Slice] = true
		if l.running[g.Slice] == nil {
			l.serve(g.Slice)
			changed = true
		}
	}
	for name, guest := range l.running {
		if !wanted[name] && !guest.leaving {
			guest.leaving = true
			guest.stop()
		}
	}
	if changed {
		l.tell()
	}
}

// tell puts the guests into the host's report. A guest that is asked to do
// something was in it before.
func (l *lodge) tell() {
	names := make([]string, 0, len(l.running))
	for name := range l.running {
		names = append(names, name)
	}
	slices.Sort(names)
	l.host.report.PackedTasks = names
	l.host.publish()
}

// serve runs the agent of a guest. One that fails is tried again as long as it is
// wanted: its tasks may still run.
func (l *lodge) serve(name string) {
	ctx, stop := context.WithCancel(l.ctx)
	l.running[name] = &lodger{stop: stop}
	if err := l.host.dir.markDirty(); err != nil {
		l.host.Log.Error("guest's tasks not marked", "error", err)
	}
	config, work := l.config(name), l.host.work
	at := &guestPlace{host: l.host.host, cluster: l.host.cluster, offers: l.offer}
	l.workers.Go(func() {
		defer stop()
		for {
			err := at.serve(ctx, config)
			if err == nil {
				break
			}
			config.Log.Error("guest not served", "error", err)
			if !sleep.For(work, guestRetry) {
				break
			}
		}
		at.host.live.drop(name)
		select {
		case l.ended <- name:
		case <-work.Done():
		}
	})
}

// guestRetry is the time between two tries to serve a guest.
const guestRetry = time.Second

// serve is the guest's agent; it returns once ctx has ended and with it the
// guest's task.
func (g *guestPlace) serve(ctx context.Context, c Config) error {
	dir, err := openHostDir(c.Dir)
	if err != nil {
		return err
	}
	return serve(ctx, c, dir, place{guest: g})
}

// config is a guest's: it shares what belongs to the machine.
func (l *lodge) config(name string) Config {
	c := l.host.Config
	if c.WorkDir == c.Dir {
		c.WorkDir = ""
	}
	c.Slice, c.Host, c.Dir = name, 0, filepath.Join(c.Dir, guestsDir, name)
	if c.WorkDir == "" {
		c.WorkDir = c.Dir
	}
	c.Heartbeat, c.Notices, c.Follow = guestHeartbeat, l.notice, nil
	c.Log = c.Log.With("guest", name)
	return c
}

// left forgets a guest that is served no more. Its directory goes first, so that
// whoever reads that it is gone can count on that.
func (l *lodge) left(name string) {
	guest := l.running[name]
	if guest == nil {
		return
	}
	if !guest.leaving && l.ctx.Err() == nil { // somebody removed its directory
		l.serve(name)
		return
	}
	if guest.leaving {
		if err := os.RemoveAll(filepath.Join(l.host.dir.file(guestsDir), name)); err != nil {
			l.host.Log.Error("guest's directory not removed", "guest", name, "error", err)
		}
	}
	delete(l.running, name)
	l.tell()
}

// empty reports whether no guest is served.
func (l *lodge) empty() bool { return l == nil || len(l.running) == 0 }

// endings are the guests that are served no more, for left.
func (l *lodge) endings() <-chan string {
	if l == nil {
		return nil
	}
	return l.ended
}

// noticed tells the guests that the host is to be preempted.
func (l *lodge) noticed(notice string) {
	if l != nil {
		l.notice.set(notice)
	}
}

// offered tells the guests where the host serves.
func (l *lodge) offered(o offer) {
	if l != nil {
		l.offer.set(o)
	}
}

// place is what an agent serves: a host, by whose lock it is the only one to do so,
// or a guest.
type place struct {
	lock  *os.File
	guest *guestPlace
}

// guestPlace is what a guest has of its host.
type guestPlace struct {
	host    *hostService
	cluster string
	offers  *board[offer]
}

// openAPI begins to serve what belongs to the machine, which guests have of their
// host. offered sends where that is, and stop ends it.
func (a *agent) openAPI(at place) (offered func(context.Context, chan<- offer), stop func()) {
	if g := at.guest; g != nil {
		a.host, a.live, a.cluster = g.host, g.host.live, g.cluster
		return g.offered, func() {}
	}
	api := openAPI(a.Config, a.dir, a.state)
	a.host, a.live, a.cluster = api.host, api.host.live, api.cluster
	return api.offered, api.stop
}

// offered sends where the host serves whenever that changes.
func (g *guestPlace) offered(ctx context.Context, to chan<- offer) {
	last := offer{}
	for {
		next, err := g.offers.Next(ctx, last)
		if err != nil {
			return
		}
		select {
		case to <- next:
			last = next
		case <-ctx.Done():
			return
		}
	}
}

// drop forgets the task of a slice that is served no more.
func (l *liveTasks) drop(slice string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tasks, slice)
}

// guest is the name of the guest that the agent serves, "" for a host.
func (a *agent) guest() string {
	if a.lodge != nil {
		return ""
	}
	return a.Slice
}
