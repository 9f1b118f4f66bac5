package keys

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// RosterKey is the object with the keys of all hosts as the controller that leads knows them, for
// the next one: after a takeover all hosts come at a time, and the report of each would be read
// for its key.
const RosterKey = "hostkeys.json"

const (
	// rosterLife is how long the roster of the controller before counts in a term: that long a key
	// that was removed from the store goes on to count, no longer than one that was read before does.
	rosterLife = 30 * time.Second
	rosterPace = time.Minute
	// fewHosts are looked up sooner than a roster is of use.
	fewHosts = 64
)

// Roster has the public keys of hosts, by slice and number; an empty one is not known.
type Roster map[string][][]byte

// Reports are the reports of hosts, in any order.
type Reports func(yield func(*state.HostReport) bool)

// newRoster is the roster of hosts, and how many it has.
func newRoster(reports Reports) (Roster, int) {
	r, known := Roster{}, 0
	for report := range reports {
		if len(report.SigningKey) != ed25519.PublicKeySize || report.Host < 0 || report.Host > 1<<16 {
			continue
		}
		of := r[report.Slice]
		if more := report.Host + 1 - len(of); more > 0 {
			of = append(of, make([][]byte, more)...)
		}
		of[report.Host] = report.SigningKey
		r[report.Slice] = of
		known++
	}
	return r, known
}

// KeepRoster writes the roster of hosts to the store when it has changed, until ctx ends.
func KeepRoster(ctx context.Context, s store.Store, reports func() Reports) {
	var written []byte
	for sleep.For(ctx, rosterPace) {
		roster, known := newRoster(reports())
		data, err := json.Marshal(roster)
		if err != nil || known < fewHosts || bytes.Equal(data, written) {
			continue
		}
		// A former leader's, or one that is not written, costs the next one look-ups alone.
		if _, err := s.Put(ctx, RosterKey, data, store.Any); err == nil {
			written = data
		}
	}
}

// ReadRoster reads the roster of the controller before; nil: there is none.
func ReadRoster(ctx context.Context, s store.Store) (Roster, error) {
	object, err := s.Get(ctx, RosterKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the keys of hosts: %w", err)
	}
	var r Roster
	if err := store.Decode(object.Data, &r); err != nil {
		return nil, fmt.Errorf("%s in %s is damaged: %w", RosterKey, s.Location(), err)
	}
	return r, nil
}

// Begin has the keys of a roster count at the beginning of a term, without being looked up.
func (r *Reader) Begin(roster Roster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roster, r.rosterAt = roster, time.Now()
}

// listed is a host's key in the roster.
func (r *Reader) listed(id token.ID) (token.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.roster == nil || id.Role != token.RoleHost {
		return token.Key{}, false
	}
	if time.Since(r.rosterAt) >= rosterLife {
		r.roster = nil
		return token.Key{}, false
	}
	of := r.roster[id.Slice]
	if id.Host < 0 || id.Host >= len(of) {
		return token.Key{}, false
	}
	key := token.Key{ID: id, Public: slices.Clone(of[id.Host])}
	return key, fits(key)
}
