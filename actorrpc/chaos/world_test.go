package chaos

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/registrytest"
	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/keys"
)

const (
	keepalive    = time.Second // of silence
	keepPatience = 2 * time.Second
	callerCount  = 16
)

// world is what the nemesis is let loose on.
type world struct {
	dir      string // of the files
	python   string // its interpreter
	programs string // directory of the programs in Python
	seed     uint64
	identity string // file that connections are secured by; "": plain text
	stranger string // file with the identity of another namespace; ""
	registry *registrytest.Registry
	// registryBusy is held while it is down.
	registryBusy sync.Mutex
	slots        []*slot
	callers      []*callingProcess

	mu       sync.Mutex
	homes    map[string]*slot // where actors are, by name
	started  []*process
	problems []string
	began    time.Time
	journal  *os.File
}

// slot is a place for a server: a task of a job, whose attempts follow one another.
type slot struct {
	world    *world
	name     string
	language language
	attempts atomic.Int64

	busy sync.Mutex // held by what happens to it

	mu      sync.Mutex
	current *server
}

// server is one attempt.
type server struct {
	*process
	attempt string
	address string
	front   *front
	before  usage
}

type callingProcess struct {
	*process
	name   string
	before usage
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), homes: map[string]*slot{}, began: time.Now(), seed: *stormSeed}
	for w.seed == 0 {
		w.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if *keepFiles != "" {
		w.dir = filepath.Join(*keepFiles, fmt.Sprintf("seed-%d", w.seed))
		if err := errors.Join(os.RemoveAll(w.dir), os.MkdirAll(w.dir, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	_, here, _, _ := runtime.Caller(0)
	top := filepath.Join(filepath.Dir(here), "..", "..", "python")
	w.python, w.programs = filepath.Join(top, ".venv", "bin", "python"), filepath.Join(top, "tests")
	if _, err := exec.LookPath(w.python); err != nil {
		t.Log("without the processes in Python: run scripts/python-env first")
		w.python = ""
	}
	var err error
	if w.journal, err = os.Create(filepath.Join(w.dir, "journal")); err != nil {
		t.Fatal(err)
	}
	if w.seed%2 == 1 {
		if w.identity, w.stranger, err = writeIdentities(w.dir); err != nil {
			t.Fatal(err)
		}
	}
	if w.registry, err = registrytest.Start(namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.registry.Stop()
		w.journal.Close()
	})
	return w
}

// writeIdentities writes what an agent does for its tasks, those of the namespace and those of another.
func writeIdentities(dir string) (own, other string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	authority, err := identity.NewAuthority(key, "chaos")
	if err != nil {
		return "", "", err
	}
	if own, err = writeIdentity(dir, authority, namespace); err != nil {
		return "", "", err
	}
	other, err = writeIdentity(dir, authority, "elsewhere")
	return own, other, err
}

func writeIdentity(dir string, authority *identity.Authority, namespace string) (file string, err error) {
	private, public, err := keys.NewIdentityKey()
	if err != nil {
		return "", err
	}
	certificate, err := authority.Issue(public, namespace)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, namespace+".pem")
	return file, os.WriteFile(file, identity.File(private, certificate, [][]byte{authority.Certificate()}), 0o600)
}

// languages are those that can be had.
func (w *world) languages() []language {
	if w.python == "" {
		return []language{golang}
	}
	return []language{golang, python}
}

// note writes what happened into the journal.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.journal, "%8.3f %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// problem notes what must not be.
func (w *world) problem(format string, args ...any) {
	w.note("PROBLEM "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *world) orders() orders {
	return orders{
		Executed: filepath.Join(w.dir, "executed"), Produced: filepath.Join(w.dir, "produced"), Seed: w.seed,
		Keepalive: keepalive.Seconds(), Patience: keepPatience.Seconds(),
	}
}

// populate starts two servers of each language, each with an actor, and the callers.
func (w *world) populate(t *testing.T) {
	t.Helper()
	for _, l := range w.languages() {
		for i := range 2 {
			s := &slot{world: w, name: fmt.Sprintf("%s%d", l, i), language: l}
			w.slots = append(w.slots, s)
			w.homes[actorName(len(w.homes))] = s
		}
	}
	t.Cleanup(w.killAll)
	var all sync.WaitGroup
	for _, s := range w.slots {
		all.Go(func() { s.revive(nil) })
	}
	all.Wait()
	share := callerCount / (len(w.languages()) * *processes)
	var made sync.Mutex
	for _, l := range w.languages() {
		for i := range *processes {
			all.Go(func() {
				c, err := w.caller(l, i, share)
				if err != nil {
					w.problem("caller %s%d: %v", l, i, err)
					return
				}
				made.Lock()
				defer made.Unlock()
				w.callers = append(w.callers, c)
			})
		}
	}
	all.Wait()
	if len(w.problems) > 0 {
		t.Fatal(strings.Join(w.problems, "\n"))
	}
}

// caller starts one, has it call every actor, and measures what it uses.
func (w *world) caller(l language, i, share int) (*callingProcess, error) {
	name := fmt.Sprintf("%s%d", l, i)
	o := w.orders()
	o.Outcomes, o.Received = filepath.Join(w.dir, "outcomes-"+name), filepath.Join(w.dir, "received-"+name)
	o.Seed = w.seed*100 + uint64(i)
	for n := range share {
		o.Callers = append(o.Callers, fmt.Sprintf("%s.%d", name, n))
	}
	w.mu.Lock()
	for actor := range w.homes {
		o.Actors = append(o.Actors, actor)
	}
	w.mu.Unlock()
	slices.Sort(o.Actors)
	p, err := start(w, l, roleCaller, "caller/1", o)
	if err != nil {
		return nil, err
	}
	text, err := p.ask("calm", "calm")
	if err != nil {
		p.kill()
		return nil, err
	}
	before, err := usageOf(text)
	return &callingProcess{process: p, name: name, before: before}, err
}

// killAll leaves nothing behind.
func (w *world) killAll() {
	for _, c := range w.callers {
		c.kill()
	}
	for _, s := range w.slots {
		if v := s.server(); v != nil {
			v.kill()
			v.front.close()
		}
	}
}

func actorName(i int) string { return fmt.Sprintf("counter-%d", i) }

func (s *slot) server() *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// actors are the names that have their home in the slot.
func (s *slot) actors() []string {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	var names []string
	for name, home := range s.world.homes {
		if home == s {
			names = append(names, name)
		}
	}
	return names
}

// revive starts the next attempt with the slot's actors, behind a proxy that it
// inherits or, without, a new one.
func (s *slot) revive(inherited *front) *server {
	w := s.world
	attempt := fmt.Sprintf("%s/%d", s.name, s.attempts.Add(1))
	p, err := start(w, s.language, roleServer, attempt, w.orders())
	if err != nil {
		w.problem("start %s: %v", attempt, err)
		return nil
	}
	v := &server{process: p, attempt: attempt, front: inherited}
	text, err := p.heard("ready")
	if err != nil {
		w.problem("start %s: %v", attempt, err)
		p.kill()
		return nil
	}
	_, _ = fmt.Sscan(text, &v.address, &v.before.threads, &v.before.descriptors)
	if inherited == nil || inherited.lead(v.address) != nil { // the port may be another's by now
		if v.front, err = newFront(v.address); err != nil {
			w.problem("proxy of %s: %v", attempt, err)
		}
		if inherited != nil {
			inherited.close()
		}
	}
	w.registry.Proxied(v.address, v.front.address)
	s.mu.Lock()
	s.current = v
	s.mu.Unlock()
	for _, name := range s.actors() {
		s.host(name)
	}
	w.note("%s is at %s behind %s, pid %d", attempt, v.address, v.front.address, p.cmd.Process.Pid)
	return v
}

// host has the slot's server serve a new incarnation of an actor.
func (s *slot) host(name string) {
	life := strings.ToLower(rand.Text()[:10])
	v := s.server()
	s.world.note("%s hosts %s, life %s", v.attempt, name, life)
	if _, err := v.ask("host "+name+" "+life, "hosted"); err != nil {
		s.world.problem("%s hosts %s: %v", v.attempt, name, err)
	}
}

// drop has the slot's server serve an actor no more.
func (s *slot) drop(name string) {
	v := s.server()
	text, err := v.ask("drop "+name, "dropped")
	s.world.note("%s drops %s %s", v.attempt, name, text)
	if err != nil {
		s.world.problem("%s drops %s: %v", v.attempt, name, err)
	}
}

// kill ends the slot's server at once. Its proxy is left, which resets connections or refuses them.
func (s *slot) kill(refuse bool) *front {
	v := s.server()
	_ = v.front.lead("")
	if refuse {
		v.front.refuse()
	}
	v.kill()
	return v.front
}

// drain ends the slot's server as a cluster does, and leaves its proxy.
func (s *slot) drain() *front {
	v := s.server()
	v.signal(syscall.SIGTERM)
	if err := v.leave(); err != nil {
		s.world.problem("%s drains: %v", v.attempt, err)
		v.kill()
	}
	_ = v.front.lead("")
	return v.front
}
