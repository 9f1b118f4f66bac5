package keyring_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"

	"github.com/fray-ml/fray/state/keyring"
)

// person is a recipient and the content of an identity file.
type person struct{ public, secret string }

func (p person) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(path, []byte(p.secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newAgeIdentity(t *testing.T) person {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	public := identity.Recipient().String()
	return person{public, "# created: today\n# public key: " + public + "\n" + identity.String() + "\n"}
}

func newHybridIdentity(t *testing.T) person {
	t.Helper()
	identity, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return person{identity.Recipient().String(), identity.String() + "\n"}
}

func newEd25519(t *testing.T, comment string) person {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newSSH(t, key, comment)
}

func newRSA(t *testing.T, comment string) person {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return newSSH(t, key, comment)
}

func newECDSA(t *testing.T) person {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newSSH(t, key, "")
}

func newSSH(t *testing.T, key any, comment string) person {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		t.Fatal(err)
	}
	return person{authorized(t, key, comment), string(pem.EncodeToMemory(block))}
}

// withPassphrase is an SSH key as most people have it.
func withPassphrase(t *testing.T, comment string) person {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, comment, []byte("hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	return person{authorized(t, key, comment), string(pem.EncodeToMemory(block))}
}

// authorized is a line of authorized_keys.
func authorized(t *testing.T, key any, comment string) string {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return strings.TrimSpace(line + " " + comment)
}

// What is wrapped is an age file, which age opens without this package.
func TestAgeOpensThePayload(t *testing.T) {
	native, ed, rsa := newAgeIdentity(t), newEd25519(t, "alice@laptop"), newRSA(t, "")
	policy := recipients(native.public, ed.public, rsa.public)
	_, secret, data := lock{policy: policy}.make(t)
	var object struct{ Payload []byte }
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	natives, err := age.ParseIdentities(strings.NewReader(native.secret))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []person{native, ed, rsa} {
		identities := natives
		if i > 0 {
			identity, err := agessh.ParseIdentity([]byte(p.secret))
			if err != nil {
				t.Fatal(err)
			}
			identities = []age.Identity{identity}
		}
		content, err := age.Decrypt(bytes.NewReader(object.Payload), identities...)
		if err != nil {
			t.Fatalf("recipient %d: %v", i, err)
		}
		if got, err := io.ReadAll(content); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("recipient %d: got %x, %v, want %x", i, got, err, secret)
		}
	}
}

func TestIdentityFiles(t *testing.T) {
	native, ed, rsa := newAgeIdentity(t).public, newEd25519(t, "").public, newRSA(t, "").public
	everywhere := keyring.Environment{ConfigDir: "/config", HomeDir: "/home"}
	named := everywhere
	named.AgeIdentity = strings.Join([]string{"/a", "", "/b"}, string(os.PathListSeparator))
	tests := []struct {
		name        string
		policy      keyring.Policy
		environment keyring.Environment
		want        []string
	}{
		{"named", recipients(ed), named, []string{"/a", "/b"}},
		{"of age", recipients(native), everywhere, []string{"/config/fray/identities.txt"}},
		{"of ssh", recipients(ed), everywhere, []string{"/config/fray/identities.txt", "/home/.ssh/id_ed25519"}},
		{"of all", recipients(rsa, ed, native), everywhere, []string{"/config/fray/identities.txt", "/home/.ssh/id_ed25519", "/home/.ssh/id_rsa"}},
		{"nowhere", recipients(ed), keyring.Environment{}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k, _, _ := lock{policy: test.policy}.make(t)
			if got := k.IdentityFiles(test.environment); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestUnfitIdentityFilesArePassedOver(t *testing.T) {
	me := newAgeIdentity(t)
	_, secret, data := lock{policy: recipients(me.public)}.make(t)
	files := []string{
		filepath.Join(t.TempDir(), "none"), withPassphrase(t, "").file(t), newAgeIdentity(t).file(t), me.file(t), newECDSA(t).file(t),
	}
	got, err := parse(t, data).Open(t.Context(), keyring.Unlock{IdentityFiles: files})
	if err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %x, %v, want %x", got, err, secret)
	}
}

func TestSeveralIdentitiesInAFile(t *testing.T) {
	me, other := newAgeIdentity(t), newAgeIdentity(t)
	_, secret, data := lock{policy: recipients(me.public)}.make(t)
	both := person{secret: other.secret + "\r\n" + strings.ReplaceAll(me.secret, "\n", "\r\n")}
	got, err := parse(t, data).Open(t.Context(), keyring.Unlock{IdentityFiles: []string{both.file(t)}})
	if err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %x, %v, want %x", got, err, secret)
	}
}

// The error of a key that cannot be opened names its recipients, what was tried, and what
// to do; and it contains nothing of the identities.
func TestLockedForAge(t *testing.T) {
	owner, alice := newAgeIdentity(t), newEd25519(t, "alice@laptop")
	_, _, data := lock{policy: recipients(owner.public, alice.public)}.make(t)
	k := parse(t, data)
	other, mistyped := newAgeIdentity(t), newAgeIdentity(t)
	typo := strings.LastIndex(mistyped.secret, "\n") - 1
	mistyped.secret = mistyped.secret[:typo] + "!" + mistyped.secret[typo:]
	file := func(content string) string { return person{secret: content}.file(t) }
	missing := filepath.Join(t.TempDir(), "none")
	encrypted := "it is itself encrypted with age, and fray does not ask for passphrases: decrypt it, or use another"
	tests := []struct{ name, path, want string }{
		{"missing", missing, missing + " (there is no such file)"},
		{"a directory", filepath.Dir(missing), " (is a directory)"},
		{"another user's", other.file(t), " (of another recipient)"},
		{"another user's SSH key", newEd25519(t, "").file(t), " (of another recipient)"},
		{"empty", file("\n"), " (it is empty)"},
		{"only comments", file("# nothing\n"), "(no age identity file and no SSH private key: no identities found)"},
		{"mistyped", mistyped.file(t), "(no age identity file and no SSH private key: error at line 3)"},
		{"a passphrase", withPassphrase(t, "").file(t),
			" (an SSH key with a passphrase, which fray does not ask for: use an SSH key without one, or an age identity made with age-keygen)"},
		{"an unfit SSH key", newECDSA(t).file(t), " (no SSH private key of type ed25519 or rsa)"},
		{"a public key", file(alice.public), " (it holds a public key, and the secret one is needed)"},
		{"a recipient", file(owner.public), " (it holds a public key, and the secret one is needed)"},
		{"a plugin's", file("# x\nAGE-PLUGIN-YUBIKEY-1AAAA\n"), " (it needs an age plugin, which fray does not run)"},
		{"encrypted", file("age-encryption.org/v1\n-> scrypt"), encrypted},
		{"encrypted, in ASCII", file("-----BEGIN AGE ENCRYPTED FILE-----\n"), encrypted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := k.Open(t.Context(), keyring.Unlock{IdentityFiles: []string{test.path, missing}})
			wantError(t, err, keyring.ErrLocked, "open the stack's key: the stack's key cannot be opened here: it is wrapped for "+owner.public,
				"(alice@laptop)", test.want, "; tried "+test.path, missing+" (there is no such file); ",
				"set FRAY_AGE_IDENTITY to the file", "add yours to the recipients and apply")
			content, _ := os.ReadFile(test.path)
			for line := range strings.SplitSeq(string(content), "\n") {
				if strings.HasPrefix(line, "AGE-SECRET-KEY-1") && strings.Contains(err.Error(), line[16:30]) {
					t.Errorf("the message tells the key: %v", err)
				}
			}
		})
	}
	_, err := k.Open(t.Context(), keyring.Unlock{})
	wantError(t, err, keyring.ErrLocked, "; no identity file is known; set FRAY_AGE_IDENTITY")
}
