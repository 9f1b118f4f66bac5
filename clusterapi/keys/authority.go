package keys

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// AuthoritiesKey is where the authorities of actors are published.
const AuthoritiesKey = "authorities.json"

// Authority is the published half of an [identity.Authority].
type Authority struct {
	Certificate []byte `json:"certificate"` // DER
	// Epoch is that of the leader whose authority it is, 0 for a command's.
	Epoch uint64 `json:"epoch,omitempty"`
	// User and Expires are those of a command's.
	User    string    `json:"user,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// published authorities.
type authorities struct {
	Authorities []Authority `json:"authorities"`
}

// ReadAuthorities returns what is published, and the object's generation.
func ReadAuthorities(ctx context.Context, s store.Store) ([]Authority, store.Generation, error) {
	return ReadAuthoritiesUnless(ctx, s, store.Absent)
}

// ReadAuthoritiesUnless is ReadAuthorities, or [store.ErrUnchanged] if the generation is known.
func ReadAuthoritiesUnless(ctx context.Context, s store.Store, known store.Generation) ([]Authority, store.Generation, error) {
	object, err := store.GetUnless(ctx, s, AuthoritiesKey, known)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.Absent, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the authorities of actors: %w", err)
	}
	var all authorities
	if err := store.Decode(object.Data, &all); err != nil {
		return nil, 0, fmt.Errorf("%s in %s is damaged; run fray state rekey to write it anew: %w", AuthoritiesKey, s.Location(), err)
	}
	return all.Authorities, object.Generation, nil
}

// EditAuthorities replaces what is published by what edit makes of it.
func EditAuthorities(ctx context.Context, s store.Store, edit func([]Authority) []Authority) error {
	for {
		before, generation, err := ReadAuthorities(ctx, s)
		if err != nil {
			return err
		}
		after := edit(slices.Clone(before))
		if slices.EqualFunc(before, after, same) {
			return nil
		}
		data, err := store.Encode(authorities{after})
		if err != nil {
			return fmt.Errorf("publish an authority of actors: %w", err)
		}
		switch _, err := s.Put(ctx, AuthoritiesKey, data, generation); {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrConflict): // else another writer was faster, or a reply was lost
			return fmt.Errorf("publish an authority of actors: %w", denied(err))
		}
	}
}

func same(a, b Authority) bool {
	return slices.Equal(a.Certificate, b.Certificate) && a.Epoch == b.Epoch && a.User == b.User && a.Expires.Equal(b.Expires)
}

// put puts an authority among others, in place of itself.
func put(all []Authority, a Authority) []Authority {
	all = slices.DeleteFunc(all, func(b Authority) bool { return slices.Equal(a.Certificate, b.Certificate) })
	return append(all, a)
}

// NewIdentityKey makes a key that an authority may certify: the private half (PKCS #8)
// and the public one (PKIX), both in DER.
func NewIdentityKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make an identity key: %w", err)
	}
	if private, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		return nil, nil, fmt.Errorf("make an identity key: %w", err)
	}
	if public, err = x509.MarshalPKIXPublicKey(&key.PublicKey); err != nil {
		return nil, nil, fmt.Errorf("make an identity key: %w", err)
	}
	return private, public, nil
}

// newAuthority makes an authority, whose private key stays in memory.
func newAuthority(stack string) (*identity.Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make an actor authority: %w", err)
	}
	return identity.NewAuthority(key, stack)
}

// Issuer certifies the hosts that assignments go to, for who leads. Its authority is
// published before the first of them. It may be used concurrently.
type Issuer struct {
	store store.Store
	epoch uint64

	turn      chan struct{}       // holds a value while authority is read or published
	authority *identity.Authority // nil: none is published
}

// NewIssuer returns the issuer of the leader of an epoch.
func NewIssuer(s store.Store, epoch uint64) *Issuer {
	return &Issuer{store: s, epoch: epoch, turn: make(chan struct{}, 1)}
}

// Certify puts into an assignment what its hosts prove their namespace with, by the
// keys that they have reported. An assignment that has it stays as it is.
func (i *Issuer) Certify(ctx context.Context, a *state.Assignment, hosts []state.HostReport) error {
	if a.Run == nil || a.Run.Certificates != nil {
		return nil
	}
	authority, err := i.published(ctx, a.Stack)
	if err != nil {
		return err
	}
	run := *a.Run
	for _, h := range hosts {
		if h.IdentityKey == nil { // of an agent of a former version
			continue
		}
		certificate, err := authority.Issue(h.IdentityKey, run.Spec.Namespace)
		if err != nil {
			return err
		}
		run.Certificates = append(run.Certificates, state.Certificate{Host: h.Host, DER: certificate})
	}
	a.Run = &run
	return nil
}

func (i *Issuer) published(ctx context.Context, stack string) (*identity.Authority, error) {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if i.authority != nil {
		return i.authority, nil
	}
	authority, err := newAuthority(stack)
	if err != nil {
		return nil, err
	}
	err = EditAuthorities(ctx, i.store, func(all []Authority) []Authority {
		return put(all, Authority{Certificate: authority.Certificate(), Epoch: i.epoch})
	})
	if err != nil {
		return nil, err
	}
	i.authority = authority
	return authority, nil
}

// PruneAuthorities removes the authorities of commands that have expired by the
// leader's clock, and those of earlier leaders than the one of an epoch that have
// certified nothing which is assigned still. As long as an assignment cannot be read,
// which is written anew, leaders' authorities stay: one of them may have certified it.
func PruneAuthorities(ctx context.Context, s store.Store, now time.Time, epoch uint64) error {
	published, _, err := ReadAuthorities(ctx, s)
	if err != nil || len(published) == 0 {
		return err
	}
	used, damaged, err := certificates(ctx, s)
	if err != nil {
		return err
	}
	goes := map[string]bool{}
	for _, a := range published {
		old := a.expired(now) || a.Epoch > 0 && a.Epoch < epoch && !damaged
		if old && !slices.ContainsFunc(used, func(c []byte) bool { return identity.IssuedBy(c, a.Certificate) }) {
			goes[string(a.Certificate)] = true
		}
	}
	return EditAuthorities(ctx, s, func(all []Authority) []Authority {
		return slices.DeleteFunc(all, func(a Authority) bool { return goes[string(a.Certificate)] })
	})
}

// manyAuthorities is from how many on those of earlier leaders are looked through:
// that takes reading all assignments.
const manyAuthorities = 16

// PruneExpired removes the keys and authorities of commands that have expired, for who
// leads for a short while, and the authorities of earlier leaders where many are
// left.
func PruneExpired(ctx context.Context, s store.Store, now time.Time, epoch uint64) error {
	if _, err := Prune(ctx, s, now, false); err != nil {
		return err
	}
	published, _, err := ReadAuthorities(ctx, s)
	switch {
	case err != nil:
		return err
	case len(published) >= manyAuthorities:
		return PruneAuthorities(ctx, s, now, epoch)
	case !slices.ContainsFunc(published, func(a Authority) bool { return a.expired(now) }):
		return nil
	}
	return EditAuthorities(ctx, s, func(all []Authority) []Authority {
		return slices.DeleteFunc(all, func(a Authority) bool { return a.expired(now) })
	})
}

// expired reports whether it is a command's that counts no more.
func (a Authority) expired(now time.Time) bool {
	return a.Epoch == 0 && now.After(a.Expires.Add(pruneGrace))
}

// certificates are those in assignments, and whether there are assignments that cannot
// be read.
func certificates(ctx context.Context, s store.Store) (all [][]byte, damaged bool, err error) {
	objects, err := s.List(ctx, store.AssignPrefix)
	if err != nil {
		return nil, false, fmt.Errorf("list assignments: %w", err)
	}
	for _, o := range objects {
		object, err := s.Get(ctx, o.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("read %s: %w", o.Key, err)
		}
		a, err := store.DecodeAssignment(object.Data)
		damaged = damaged || err != nil
		if err != nil || a.Run == nil {
			continue
		}
		for _, c := range a.Run.Certificates[:min(1, len(a.Run.Certificates))] { // one authority has issued them all
			all = append(all, c.DER)
		}
	}
	return all, damaged, nil
}

// Member is a command that calls the actors of namespaces, as one of them: its own
// authority certifies it, which it may publish since it may write. It may be used
// concurrently.
type Member struct {
	store       store.Store
	published   Authority
	authority   *identity.Authority
	key, public []byte // PKCS #8, PKIX

	mu           sync.Mutex
	certificates map[string][]byte // by namespace
}

// Join publishes a command's authority, for CommandLife from now by the leader's clock.
// Hosts accept it within a few seconds.
func Join(ctx context.Context, s store.Store, stack, user string, now time.Time) (*Member, error) {
	authority, err := newAuthority(stack)
	if err != nil {
		return nil, err
	}
	key, public, err := NewIdentityKey()
	if err != nil {
		return nil, err
	}
	m := &Member{
		store: s, authority: authority, key: key, public: public,
		published:    Authority{Certificate: authority.Certificate(), User: user},
		certificates: map[string][]byte{},
	}
	return m, m.Renew(ctx, now)
}

// Renew publishes the command's authority for CommandLife from now.
func (m *Member) Renew(ctx context.Context, now time.Time) error {
	m.mu.Lock()
	m.published.Expires = now.UTC().Add(token.CommandLife)
	published := m.published
	m.mu.Unlock()
	return EditAuthorities(ctx, m.store, func(all []Authority) []Authority { return put(all, published) })
}

// File is what FRAY_ACTOR_IDENTITY names for a member of a namespace, with the
// authorities of now.
func (m *Member) File(ctx context.Context, namespace string) ([]byte, error) {
	certificate, err := m.certificate(namespace)
	if err != nil {
		return nil, err
	}
	all, _, err := ReadAuthorities(ctx, m.store)
	if err != nil {
		return nil, err
	}
	return identity.File(m.key, certificate, Trusted(all)), nil
}

func (m *Member) certificate(namespace string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if issued, ok := m.certificates[namespace]; ok {
		return issued, nil
	}
	issued, err := m.authority.Issue(m.public, namespace)
	if err != nil {
		return nil, err
	}
	m.certificates[namespace] = issued
	return issued, nil
}

// Trusted are the certificates of authorities.
func Trusted(all []Authority) [][]byte {
	certificates := make([][]byte, len(all))
	for i := range all {
		certificates[i] = all[i].Certificate
	}
	return certificates
}

// Recertify makes a new authority the only one, for who holds the lease of an epoch: it
// certifies the hosts of all that is assigned anew, and then nothing that
// others have certified counts any more. valid is nil while the lease holds. It
// returns how many slices it has certified, and the keys of the assignments that cannot
// be read: they are left as they are, and certified when they are written anew.
func Recertify(ctx context.Context, s store.Store, epoch uint64, valid func() error) (certified int, damaged []string, err error) {
	objects, err := s.List(ctx, store.AssignPrefix)
	if err != nil {
		return 0, nil, fmt.Errorf("list assignments: %w", err)
	}
	issuer := NewIssuer(s, epoch)
	for _, o := range objects {
		if err := valid(); err != nil {
			return certified, damaged, err
		}
		done, err := issuer.recertify(ctx, o.Key)
		switch {
		case errors.Is(err, errAssignment):
			damaged = append(damaged, o.Key)
		case err != nil:
			return certified, damaged, fmt.Errorf("certify the hosts of %s: %w", o.Key, err)
		case done:
			certified++
		}
	}
	return certified, damaged, EditAuthorities(ctx, s, func(all []Authority) []Authority {
		for _, a := range all {
			if issuer.authority != nil && string(a.Certificate) == string(issuer.authority.Certificate()) {
				return []Authority{a}
			}
		}
		return nil
	})
}

// errAssignment means that an assignment cannot be read.
var errAssignment = errors.New("the assignment cannot be read")

// recertify writes one assignment with new certificates and nothing else changed. One
// that changes meanwhile is read again.
func (i *Issuer) recertify(ctx context.Context, key string) (bool, error) {
	for {
		object, err := i.store.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		a, err := store.DecodeAssignment(object.Data)
		if err != nil {
			return false, fmt.Errorf("%w: %w", errAssignment, err)
		}
		if a.Run == nil || a.MovedTo != "" {
			return false, nil
		}
		run := *a.Run
		run.Certificates, a.Run = nil, &run
		hosts, err := i.reports(ctx, a.Slice)
		if err == nil {
			err = i.Certify(ctx, &a, hosts)
		}
		if err != nil {
			return false, err
		}
		data, err := store.Encode(a)
		if err != nil {
			return false, err
		}
		if _, err = i.store.Put(ctx, key, data, object.Generation); !errors.Is(err, store.ErrConflict) {
			return err == nil, err
		}
	}
}

// reports are those of a slice's hosts.
func (i *Issuer) reports(ctx context.Context, slice string) ([]state.HostReport, error) {
	objects, err := i.store.List(ctx, store.HostsOf(slice))
	if err != nil {
		return nil, err
	}
	var all []state.HostReport
	for _, o := range objects {
		object, err := i.store.Get(ctx, o.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		var r state.HostReport
		if err == nil {
			r, err = store.DecodeReport(object.Data)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
