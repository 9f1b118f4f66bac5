package ray

import (
	"context"
	"sync"

	"github.com/fray-ml/fray/schema"
)

// seen is what a process has seen of slices, and in which session of a cluster. It only tells
// what a direct read means: nothing depends on it for long.
type seen struct {
	mu      sync.Mutex
	session string
	last    map[string]int  // the number of the newest submission, by slice
	former  map[string]bool // slices that were seen in a session before this one, and not since
}

func (s *seen) add(all map[string]history) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, h := range all {
		s.last[name] = max(s.last[name], h.newest().n)
		delete(s.former, name)
	}
}

// newest is the number of the newest submission of a slice that is known, 1 where none is.
func (s *seen) newest(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.last[name], 1)
}

// enter notes the session of the cluster that answers.
func (s *seen) enter(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != "" && session != s.session {
		for name := range s.last {
			s.former[name] = true
		}
		clear(s.last)
	}
	s.session = session
}

func (s *seen) isFormer(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.former[name]
}

// meet reads which session of which cluster answers.
func (p *Provider) meet(ctx context.Context) error {
	v, err := p.client.version(ctx)
	if err == nil {
		p.seen.enter(v.Session)
	}
	return err
}

// checkSession returns an error where a slice that Ray does not know was seen in another session:
// the head was restarted, and nodes of before end their agents up to minutes later, or the address leads
// to another cluster, and the slice runs on. The plan then waits until its hosts are silent.
func (p *Provider) checkSession(ctx context.Context, name string) error {
	if err := p.meet(ctx); err != nil {
		return err
	}
	if p.seen.isFormer(name) {
		return failf(schema.ErrorUnavailable,
			"Ray at %s was restarted, or is another cluster, since the slice was seen; it counts as gone once its hosts are silent. If address in provider \"ray\" leads to another cluster, correct it",
			p.client.address)
	}
	return nil
}
