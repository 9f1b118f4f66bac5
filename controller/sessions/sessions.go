// Package sessions ends the jobs of clients that have gone. A client holds its session by
// a call that lasts as long as it does; what it launched with the session's id ends a
// while after that call has ended and no other holds the session. Who may hold one, and
// what ending a job means, is left to services and to package launch.
//
// Start with [Sessions]; [Sessions.Reap] runs while this process leads.
package sessions

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// Lease is how long a session outlives its last holder: as long as another controller
// needs to lead, and a client to find it, with room.
const Lease = 30 * time.Second

// pace is the time between two searches for sessions that are over.
const pace = 2 * time.Second

// memory is how long sessions that are over are known.
const memory = time.Hour

// Sessions are those of the clients that this process has heard of.
type Sessions struct {
	mu    sync.Mutex
	held  map[string]int       // how many calls hold each
	left  map[string]time.Time // when the last one that held it ended
	ended map[string]time.Time // when its client ended it
}

// New are no sessions yet.
func New() *Sessions {
	return &Sessions{held: map[string]int{}, left: map[string]time.Time{}, ended: map[string]time.Time{}}
}

// End lets a session be over, whether or not a call holds it.
func (s *Sessions) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[id] = time.Now()
}

// Hold keeps a session until release.
func (s *Sessions) Hold(id string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id]++
	delete(s.left, id)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[id]--; s.held[id] == 0 {
			delete(s.held, id)
			s.left[id] = time.Now()
		}
	})
}

// over are the jobs whose session no call has held for the lease. since is when this
// process began to lead: earlier, others may have been held elsewhere.
func (s *Sessions) over(doc *state.Document, now, since time.Time) []ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []ending
	for addr, j := range doc.Jobs {
		l := j.Launch
		if l == nil || l.Session == "" || l.Detached || j.Status.Ended() || j.Stop {
			continue
		}
		if _, ended := s.ended[l.Session]; ended {
			found = append(found, ending{addr, "the end of " + creator(l)})
			continue
		}
		if s.held[l.Session] > 0 {
			continue
		}
		left, known := s.left[l.Session]
		if !known {
			left = latest(l.At, since)
		}
		if now.Sub(latest(left, since)) >= Lease {
			found = append(found, ending{addr, fmt.Sprintf("the loss of %s: nothing was heard of it for %s", creator(l), Lease)})
		}
	}
	return found
}

// ending is a job that ends with its client, and what happened to that, for people.
type ending struct {
	addr schema.Address
	by   string
}

// creator is the client that launched a job, for people.
func creator(l *state.Launch) string {
	if l.By == "" {
		return fmt.Sprintf("client %s, which created it", l.Session)
	}
	return fmt.Sprintf("client %s of %s, which created it", l.Session, l.By)
}

// forget drops what is known of sessions that were over long ago: what they launched has
// ended since.
func (s *Sessions) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range []map[string]time.Time{s.left, s.ended} {
		maps.DeleteFunc(times, func(_ string, at time.Time) bool { return now.Sub(at) >= memory })
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Reap ends the jobs whose sessions are over until ctx, which is that of the lease, ends.
func (s *Sessions) Reap(ctx context.Context, stack access.State, log *slog.Logger) {
	since := time.Now()
	for sleep.For(ctx, pace) {
		view := stack.View()
		if view.At.IsZero() {
			continue
		}
		s.forget(time.Now())
		over := s.over(view.Doc, time.Now(), since)
		if len(over) == 0 {
			continue
		}
		err := stack.Do(ctx, func(doc *state.Document, _ time.Time) (*state.Document, error) {
			for _, one := range s.over(doc, time.Now(), since) {
				doc = launch.Terminated(doc, one.addr, one.by)
			}
			return doc, nil
		})
		if err != nil && ctx.Err() == nil {
			log.Warn("jobs of a client that has gone are not ended yet", "error", err.Error())
			continue
		}
		for _, one := range over {
			log.Info("ending a job whose client has gone", "job", one.addr.String(), "because of", one.by)
		}
	}
}
