package agent

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
)

// keysFile holds the private keys of a host, in its own directory and nowhere
// else. They are the same ones after a restart of its agent.
const keysFile = "keys.json"

// hostKeys are a host's own. Their public halves are in its report.
type hostKeys struct {
	// Signing is the seed of an Ed25519 key, with which the host vouches for the
	// tasks that run there.
	Signing []byte `json:"signing"`
	// Identity is a P-256 key (PKCS #8, DER), which who leads certifies for the
	// namespaces of the tasks that run there.
	Identity []byte `json:"identity"`
}

// keys are those of this host, made when there are none.
func (d *hostDir) keys() (*hostKeys, error) {
	k := &hostKeys{}
	err := readJSON(d.file(keysFile), k)
	if err == nil && len(k.Signing) == ed25519.SeedSize && k.identityKey() != nil {
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
	if err := writeJSON(d.file(keysFile), k); err != nil {
		return nil, fmt.Errorf("keep the host's keys: %w", err)
	}
	return k, nil
}

func (k *hostKeys) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.Signing) }

// public is what verifies what the host signs.
func (k *hostKeys) public() []byte {
	public, _ := k.private().Public().(ed25519.PublicKey)
	return public
}

// identityKey is the public half of the identity (PKIX, DER), nil if it is damaged.
func (k *hostKeys) identityKey() []byte {
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

// token is what the task shows to the cluster API, the same at every call; "" where
// the stack has no mark. It holds for as long as the attempt runs.
func (t *task) token() string {
	stack := t.agent.host.stack.Load()
	if stack == nil {
		return ""
	}
	signer, err := token.NewSigner(t.agent.keys.private(), *stack, token.ID{Role: token.RoleHost, Slice: t.agent.Slice, Host: t.agent.Host})
	if err == nil {
		var text string
		text, err = signer.Mint(token.Claims{
			Subject: token.SubjectJob, Namespace: t.run.Spec.Namespace, JobID: t.run.JobID, Attempt: t.run.Attempt, User: t.run.Spec.User,
		})
		if err == nil {
			return text
		}
	}
	t.agent.Log.Error("the task has no token for the cluster API", "error", err)
	return ""
}
