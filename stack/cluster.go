package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/clusterapi/dial"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Signer signs this command's tokens, for this user.
func (s *Stack) Signer(doc *state.Document) *clusterkeys.Command {
	s.signing.Do(func() { s.command = clusterkeys.NewCommand(s.Store, doc.Stack(), UserAtHost()) })
	return s.command
}

// HostToken is a user's token for a host. The host judges by the leader's clock,
// or, where no controller leads, by its own, as its last report shows it.
func (s *Stack) HostToken(signer *clusterkeys.Command, reported time.Time) dial.Token {
	return func(ctx context.Context) (string, error) {
		sight := s.Clock.Recent(ctx)
		if !sight.Leads && reported.After(sight.Now) {
			return signer.Token(ctx, reported)
		}
		return signer.Token(ctx, sight.Now)
	}
}

// Cluster connects to the controller that leads the stack, as this user: who may
// write to the stack's store may do everything.
func (s *Stack) Cluster(ctx context.Context, doc *state.Document) (*dial.Following, error) {
	signer := s.Signer(doc)
	if err := s.Prove(ctx, signer); err != nil {
		return nil, fmt.Errorf("connect to the controller: %w", err)
	}
	return dial.Follow(dial.FollowConfig{Store: s.Store, Token: signer.Token}), nil
}

// Prove publishes the command's key at once, so that a user who may not do that is
// told so, rather than that a call failed.
func (s *Stack) Prove(ctx context.Context, signer *clusterkeys.Command) error {
	_, err := signer.Token(ctx, s.Clock.Now(ctx))
	return err
}

// Served is the lease of a controller that leads and serves the cluster API,
// false if there is none.
func (s *Stack) Served(ctx context.Context) (store.Lease, bool) {
	lease, ok := s.WatchLease(ctx)
	return lease, ok && lease.ControllerAddress != ""
}

// A controller whose process was stopped or starved loses the lease, and takes it back as
// soon as it goes on.
const (
	servesAgain  = 15 * time.Second // how long that is waited for
	servedBefore = time.Minute      // how long ago it may have lost the lease
)

// AwaitServed is served, but waits for a controller that lost the lease just now and
// whose process may live.
func (s *Stack) AwaitServed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, servesAgain)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		sight, err := s.Clock.Observe(ctx)
		last := sight.Lease
		switch {
		case err != nil, !last.Yields, last.ControllerAddress == "":
			return false
		case Leads(sight):
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
