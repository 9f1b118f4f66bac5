package posts

import (
	"sync"

	"github.com/fray-ml/fray/rl"
)

// keptPosts is how many IDs of posts are remembered.
const keptPosts = 10_000

// postedIDs remembers the last posts by backend and ID, so that one which is made again is taken once.
type postedIDs struct {
	mu    sync.Mutex
	known map[postedID]bool
	order []postedID // the oldest first
}

type postedID struct {
	backend rl.LoggerBackend
	id      string
}

func newPostedIDs() *postedIDs { return &postedIDs{known: map[postedID]bool{}} }

// do takes a post unless its ID was taken before; "" is none. One that failed may be taken again.
func (p *postedIDs) do(backend rl.LoggerBackend, id string, take func() error) error {
	if id == "" {
		return take()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := postedID{backend: backend, id: id}
	if p.known[key] {
		return nil
	}
	if err := take(); err != nil {
		return err
	}
	p.add(key)
	return nil
}

// know has an ID count as taken.
func (p *postedIDs) know(backend rl.LoggerBackend, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(postedID{backend: backend, id: id})
}

func (p *postedIDs) add(key postedID) {
	if p.known[key] {
		return
	}
	p.known[key] = true
	p.order = append(p.order, key)
	if len(p.order) > keptPosts {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
}

// forget lets all posts be taken again: the run goes back to an earlier step, whose metrics are others then.
func (p *postedIDs) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
	p.order = nil
}
