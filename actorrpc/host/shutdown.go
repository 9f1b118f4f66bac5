package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// returnTime is how long methods have to return once their contexts have ended.
const returnTime = time.Second

// Shutdown takes the names back, rejects calls that have not begun, lets those
// that run finish as long as ctx lasts and ends all connections. The error is
// that some did not finish; their callers get that as an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.registrar.endLife()
	s.ready.Store(false)
	s.listener.health.Shutdown()
	s.registrar.withdrawAll(ctx, s.sorted())
	s.stopping.Store(true)
	for _, a := range s.sorted() {
		a.discard(func() *rpcerror.Error { return stopping(false) })
	}
	for _, c := range s.ledger.calls() { // those that wait for their arguments
		c.stopWaiting(stopping(false))
	}
	err := s.drain(ctx)
	s.close()
	return err
}

// drain waits for the calls that run.
func (s *Server) drain(ctx context.Context) error {
	if s.quiet(ctx) {
		return nil
	}
	s.endCalls(stopping(true))
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	if s.quiet(last) {
		return nil
	}
	for _, c := range s.ledger.calls() {
		c.abandon(stopping(true))
	}
	return errors.New("shut down: calls that ran did not finish in time")
}

// quiet waits until no call is left, and reports whether none is.
func (s *Server) quiet(ctx context.Context) bool {
	for s.active.Load() > 0 {
		select {
		case <-s.idle:
		case <-ctx.Done():
			return s.active.Load() == 0
		}
	}
	return true
}

// close ends everything at once. Clients hear that calls without an answer did not run.
func (s *Server) close() {
	s.stopping.Store(true)
	s.mu.Lock()
	bound, connections := s.bound, slices.Collect(maps.Keys(s.connections))
	s.closed = true
	s.mu.Unlock()
	if bound != nil {
		bound.Close()
	}
	var closing sync.WaitGroup
	for _, c := range connections {
		closing.Go(c.close)
	}
	closing.Wait()
	s.listener.close()
	s.endCalls(errStopping)
	s.registrar.endLife()
}
