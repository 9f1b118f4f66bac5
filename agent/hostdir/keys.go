package hostdir

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/clusterapi/keys"
)

// KeysFile holds the private keys of a host, in its own directory and nowhere
// else. They are the same ones after a restart of its agent.
const KeysFile = "keys.json"

// Keys are a host's own. Their public halves are in its report.
type Keys struct {
	// Signing is the seed of an Ed25519 key, with which the host vouches for the
	// tasks that run there.
	Signing []byte `json:"signing"`
	// Identity is a P-256 key (PKCS #8, DER), which who leads certifies for the
	// namespaces of the tasks that run there.
	Identity []byte `json:"identity"`
}

// Keys are those of this host those of this host, made when there are none.
func (d *Dir) Keys() (*Keys, error) {
	k := &Keys{}
	err := record.ReadJSON(d.File(KeysFile), k)
	if err == nil && len(k.Signing) == ed25519.SeedSize && k.IdentityKey() != nil {
		return k, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the host's keys: %w", err)
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make the host's keys: %w", err)
	}
	k.Signing = private.Seed()
	if k.Identity, _, err = keys.NewIdentityKey(); err != nil {
		return nil, fmt.Errorf("make the host's keys: %w", err)
	}
	if err := record.WriteJSON(d.File(KeysFile), k); err != nil {
		return nil, fmt.Errorf("keep the host's keys: %w", err)
	}
	return k, nil
}

// Private is the key with which the host signs.
func (k *Keys) Private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.Signing) }

// Public is what verifies what the host signs.
func (k *Keys) Public() []byte {
	public, _ := k.Private().Public().(ed25519.PublicKey)
	return public
}

// IdentityKey is the public half of the identity (PKIX, DER), nil if it is damaged.
func (k *Keys) IdentityKey() []byte {
	parsed, err := x509.ParsePKCS8PrivateKey(k.Identity)
	if err != nil {
		return nil
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil
	}
	return public
}
