package actorrpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
)

const (
	// maxUnused is about how many addresses a client remembers, those in use aside.
	maxUnused = 128
	// unusedAfter is how long an address that was asked for last is not forgotten.
	unusedAfter = time.Minute
)

// transports are a client's: one for each address at which frames or gRPC are spoken.
type transports struct {
	shared

	mu        sync.Mutex // guards the rest
	closed    bool
	peers     map[string]*peer
	grpcPeers map[string]*grpcPeer
	asked     map[transport]time.Time // when it was asked for last
}

func newTransports(s shared) *transports {
	return &transports{shared: s, peers: map[string]*peer{}, grpcPeers: map[string]*grpcPeer{}, asked: map[transport]time.Time{}}
}

// close hands no transport out any more, and returns those that are to be closed.
func (t *transports) close() map[string]*grpcPeer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	open := t.grpcPeers
	t.grpcPeers = nil
	return open
}

// reach is a transport to an endpoint that is connected.
func (t *transports) reach(ctx context.Context, e resolver.Endpoint) (transport, error) {
	for {
		via, err := t.to(e)
		if err != nil {
			return nil, err
		}
		if err := via.ready(ctx); !errors.Is(err, errRetired) {
			return via, err
		}
	}
}

// to is what reaches an endpoint.
func (t *transports) to(e resolver.Endpoint) (transport, error) {
	via, added, err := t.entry(e)
	if added {
		t.sweep()
	}
	return via, err
}

// entry is the transport of an address, and whether it is there since now.
func (t *transports) entry(e resolver.Endpoint) (via transport, added bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false, errClientClosed()
	}
	if e.GRPC {
		g, ok := t.grpcPeers[e.Address]
		if !ok {
			if g, err = newGRPCPeer(t.shared, e.Address); err != nil {
				return nil, false, err
			}
			t.grpcPeers[e.Address] = g
		}
		t.asked[g] = time.Now()
		return g, !ok, nil
	}
	p, ok := t.peers[e.Address]
	if !ok {
		p = newPeer(t.shared, e.Address)
		t.peers[e.Address] = p
	}
	t.asked[p] = time.Now()
	return p, !ok, nil
}

// sweep forgets addresses that are not used, if there are many. It is called when there
// is a new one, so that they cannot pile up.
func (t *transports) sweep() {
	t.mu.Lock()
	var old []transport
	if limit := time.Now().Add(-unusedAfter); len(t.peers)+len(t.grpcPeers) > maxUnused {
		for via, asked := range t.asked {
			if asked.Before(limit) {
				old = append(old, via)
			}
		}
	}
	t.mu.Unlock()
	for _, via := range old {
		t.retire(via)
	}
}

// retire forgets a transport that is of no use now.
func (t *transports) retire(via transport) {
	via.retire(func() { t.remove(via) })
}

func (t *transports) remove(via transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.asked, via)
	switch via := via.(type) {
	case *peer:
		if t.peers[via.address] == via {
			delete(t.peers, via.address)
		}
	case *grpcPeer:
		if t.grpcPeers[via.address] == via {
			delete(t.grpcPeers, via.address)
		}
	}
}

// unanswered is the call of a number that the client made by a name and has no answer to; nil: there is none.
func (t *transports) unanswered(caller string, seq uint64) *delivery {
	t.mu.Lock()
	peers := make([]*peer, 0, len(t.peers))
	for _, p := range t.peers {
		peers = append(peers, p)
	}
	t.mu.Unlock()
	for _, p := range peers {
		if d := p.unanswered(caller, seq); d != nil {
			return d
		}
	}
	return nil
}
