package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

const (
	// relayedLife is how long a token holds with which a host begins to speak through another.
	relayedLife = time.Minute
	// leaseFresh is how long one read of the lease does for all candidates, and leaseKnown is the
	// same where a controller led that takes relays: it is read again once a candidate relays, or
	// could not be used.
	leaseFresh = time.Second
	leaseKnown = time.Hour
	// lookupPatience is how long a look into the store may take on the way to a relay.
	lookupPatience = 2 * time.Second
)

// relays are the hosts through which a link may speak, found by their reports in the store.
type relays struct {
	link *Link

	mu       sync.Mutex
	election *election
	reports  map[int]state.HostReport // as they were read last
	lease    store.Lease
	readAt   time.Time // when lease was
}

var _ hostlink.Relays = (*relays)(nil)

func newRelays(l *Link) *relays {
	return &relays{link: l, election: newElection(l.cfg.Host), reports: map[int]state.HostReport{}}
}

// Count is how many hosts may relay.
func (r *relays) Count() int { return len(r.election.candidates) }

// Again is after which time a try is worth it, spread over the hosts of a slice.
func (r *relays) Again() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := r.election.again(time.Now())
	return again + rand.N(again/4)
}

// Route is the way through the nth candidate.
func (r *relays) Route(ctx context.Context, nth int) (*hostlink.Route, error) {
	r.mu.Lock()
	worth := r.election.worth(nth, time.Now())
	r.mu.Unlock()
	if !worth {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	route, err := r.route(ctx, nth)
	if errors.Is(err, errNoWay) {
		r.link.cfg.Log.Debug("no way through another host", "error", err)
		err = nil
	}
	return route, err
}

var (
	// errNoWay says that the store was read and shows no way. Where it cannot be read the error is another.
	errNoWay    = errors.New("no way")
	errKeyless  = fmt.Errorf("%w: the controller that leads takes no relays", errNoWay)
	errLeadless = fmt.Errorf("%w: no controller leads", errNoWay)
)

func (r *relays) route(ctx context.Context, nth int) (*hostlink.Route, error) {
	if _, err := r.leader(ctx, leaseKnown); err != nil {
		return nil, err
	}
	report, known, err := r.report(ctx, nth)
	if errors.Is(err, errNoWay) {
		r.ended(nth, hostlink.Failed)
	}
	if err != nil {
		return nil, err
	}
	conn, err := r.link.cfg.Connect(report.API, report.Fingerprint, func(context.Context) (string, error) {
		return r.link.vouch(r.link.cfg.Identity, callKey)
	})
	if err != nil {
		r.ended(nth, hostlink.Failed)
		return nil, fmt.Errorf("%w: %w", errNoWay, err)
	}
	return &hostlink.Route{Conn: conn, Leader: r.relayKey, Ended: func(how hostlink.Outcome) {
		if how != hostlink.Served && how != hostlink.Waited {
			r.forget(nth)
		}
		if how == hostlink.Failed && known {
			return // its agent may have started anew, with another certificate
		}
		r.ended(nth, how)
	}}, nil
}

// callKey is for what the token of a call to a relay vouches: it begins no channel.
const callKey = "call"

// relayKey is the key of the controller that leads now.
func (r *relays) relayKey(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	lease, err := r.leader(ctx, 0)
	return lease.RelayKey, err
}

// leader is the lease of a controller that takes relays. One that was read a while ago does for
// known.
func (r *relays) leader(ctx context.Context, known time.Duration) (store.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lease.RelayKey) == 0 || r.lease.Released {
		known = min(known, leaseFresh)
	}
	if r.readAt.IsZero() || time.Since(r.readAt) >= known {
		lease, err := store.ReadLease(ctx, r.link.cfg.Store)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return lease, errLeadless
		case err != nil:
			return lease, err
		}
		r.lease, r.readAt = lease, time.Now()
	}
	r.election.keyless = r.lease.ControllerAddress != "" && !r.lease.Released && len(r.lease.RelayKey) == 0
	switch {
	case r.lease.ControllerAddress == "" || r.lease.Released:
		return r.lease, errLeadless
	case r.election.keyless:
		return r.lease, errKeyless
	}
	r.link.lead(&r.lease)
	return r.lease, nil
}

// report is that of a candidate, and whether it was known already.
func (r *relays) report(ctx context.Context, nth int) (report state.HostReport, known bool, err error) {
	r.mu.Lock()
	host := r.election.candidates[nth].host
	report, known = r.reports[host]
	r.mu.Unlock()
	if known {
		return report, true, nil
	}
	object, err := r.link.cfg.Store.Get(ctx, store.HostKey(r.link.cfg.Slice, host))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return report, false, fmt.Errorf("%w: host %d of the slice has not reported", errNoWay, host)
	case err != nil:
		return report, false, fmt.Errorf("find host %d of the slice: %w", host, err)
	}
	if report, err = store.DecodeReport(object.Data); err != nil {
		return report, false, fmt.Errorf("%w: host %d of the slice: %w", errNoWay, host, err)
	}
	if report.API == "" {
		return report, false, fmt.Errorf("%w: host %d of the slice serves nothing", errNoWay, host)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports[host] = report
	return report, false, nil
}

// forget has the report of a candidate and the lease read again before the next try.
func (r *relays) forget(nth int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reports, r.election.candidates[nth].host)
	r.readAt = time.Time{}
}

func (r *relays) ended(nth int, how hostlink.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.election.ended(nth, how, time.Now())
}

// vouch makes the token of a host that speaks through another, for a key. Its clock is that of
// the lease as last read.
func (l *Link) vouch(who Identity, key string) (string, error) {
	leads := l.leads.Load()
	if leads == nil {
		return "", errNoStack
	}
	now := leads.lease.RenewedAt.Add(time.Since(leads.at))
	return l.sign(who, token.Claims{Subject: token.SubjectRelayed, Expires: now.Add(relayedLife), Key: key})
}

// leads is a lease and when it was read.
type leads struct {
	lease *store.Lease
	at    time.Time
}

// lead takes note of a lease that was read.
func (l *Link) lead(lease *store.Lease) {
	copied := *lease
	l.leads.Store(&leads{&copied, time.Now()})
	l.belongs(lease.Stack)
}
