package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/clusterapi/dial"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// signer signs this command's tokens, for this user.
func (s *stack) signer(doc *state.Document) *clusterkeys.Command {
	s.signing.Do(func() { s.command = clusterkeys.NewCommand(s.store, doc.Stack(), userAtHost()) })
	return s.command
}

// hostToken is a user's token for a host. The host judges by the leader's clock,
// or, where no controller leads, by its own, as its last report shows it.
func (s *stack) hostToken(signer *clusterkeys.Command, reported time.Time) dial.Token {
	return func(ctx context.Context) (string, error) {
		sight := s.clock.Recent(ctx)
		if !sight.Leads && reported.After(sight.Now) {
			return signer.Token(ctx, reported)
		}
		return signer.Token(ctx, sight.Now)
	}
}

// cluster connects to the controller that leads the stack, as this user: who may
// write to the stack's store may do everything.
func (s *stack) cluster(ctx context.Context, doc *state.Document) (*dial.Following, error) {
	signer := s.signer(doc)
	if err := s.prove(ctx, signer); err != nil {
		return nil, fmt.Errorf("connect to the controller: %w", err)
	}
	return dial.Follow(dial.FollowConfig{Store: s.store, Token: signer.Token}), nil
}

// prove publishes the command's key at once, so that a user who may not do that is
// told so, rather than that a call failed.
func (s *stack) prove(ctx context.Context, signer *clusterkeys.Command) error {
	_, err := signer.Token(ctx, s.clock.Now(ctx))
	return err
}

// served is the lease of a controller that leads and serves the cluster API,
// false if there is none.
func (s *stack) served(ctx context.Context) (store.Lease, bool) {
	lease, ok := s.watch(ctx)
	return lease, ok && lease.ControllerAddress != ""
}

// A controller whose process was stopped or starved loses the lease, and takes it back as
// soon as it goes on.
const (
	servesAgain  = 15 * time.Second // how long that is waited for
	servedBefore = time.Minute      // how long ago it may have lost the lease
)

// awaitServed is served, but waits for a controller that lost the lease just now and
// whose process may live.
func (s *stack) awaitServed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, servesAgain)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		sight, err := s.clock.Look(ctx)
		last := sight.Lease
		switch {
		case err != nil, !last.Yields, last.ControllerAddress == "":
			return false
		case leads(sight):
			return true
		case last.Released, last.Gone(), sight.Now.Sub(last.ExpiresAt) > servedBefore:
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
