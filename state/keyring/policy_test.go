package keyring_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state/keyring"
)

func TestValidate(t *testing.T) {
	native, hybrid := newAgeIdentity(t), newHybridIdentity(t)
	ed, ecdsa := newEd25519(t, "alice@laptop"), newECDSA(t)
	secret := native.secret[strings.Index(native.secret, "AGE-SECRET"):]
	const want = `want an age recipient ("age1…", as age-keygen prints it) or an SSH public key`
	const isSecret = "recipient 1: this is a secret key, which must not be written here"
	tests := []struct {
		name   string
		policy keyring.Policy
		want   []string // nil: nothing is wrong
	}{
		{"plain", keyring.Policy{}, nil},
		{"age", recipients(native.public), nil},
		{"spaces around", recipients(" " + native.public + "\n"), nil},
		{"post-quantum", recipients(hybrid.public), nil},
		{"SSH", recipients(ed.public), nil},
		{"both", keyring.Policy{Recipients: []string{native.public}, KMSKey: googleKey},
			[]string{"wrapped for recipients or by a KMS key: remove one of the two"}},
		{"empty", recipients(native.public, ""), []string{"recipient 2: it is empty: " + want}},
		{"no recipient", recipients("alice"), []string{"recipient 1: alice is no recipient: " + want}},
		{"mistyped", recipients(mistype(native.public)),
			[]string{"recipient 1: " + mistype(native.public) + " is no age recipient, some of it is missing or mistyped"}},
		{"cut", recipients(native.public[:30]), []string{"some of it is missing or mistyped"}},
		{"a plugin's", recipients("age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw3rhl3t"),
			[]string{"is mistyped, or the recipient of an age plugin, which fray does not run"}},
		{"a secret key", recipients(secret), []string{isSecret, "age-keygen -y"}},
		{"a secret SSH key", recipients(ed.secret), []string{isSecret, "ssh-keygen -y"}},
		{"an SSH key that cannot encrypt", recipients(ecdsa.public), []string{`SSH keys of type "ecdsa-sha2-nistp256" cannot encrypt: ` + want}},
		{"a cut SSH key", recipients(ed.public[:40]), []string{"ssh-ed25519 AAAAC3Nz", "is no SSH public key", "write the line of the .pub file whole"}},
		{"two lines", recipients(ed.public + "\n" + ed.public), []string{"recipient 1: \"ssh-ed25519", "has control characters or is not UTF-8"}},
		{"not UTF-8", recipients("age1\xff"), []string{"has control characters or is not UTF-8"}},
		{"mixed strengths", recipients(native.public, hybrid.public), []string{`post-quantum recipients ("age1pq1…") cannot be mixed with others`}},
		{"all at once", recipients("alice", "bob"), []string{"recipient 1: alice", "recipient 2: bob"}},
		{"a bare key of Google", service(googleKey), nil},
		{"a key of Google", service("gcp-kms://" + googleKey), nil},
		{"a version of a key", service("gcp-kms://" + googleKey + "/cryptoKeyVersions/1"),
			[]string{"this names one version of a key, and keys rotate: write gcp-kms://" + googleKey}},
		{"a part of a key", service("gcp-kms://projects/acme"), []string{`KMS key "gcp-kms://projects/acme": want gcp-kms://projects/P/`}},
		{"a key with an empty part", service(strings.Replace(googleKey, "acme", "", 1)), []string{"want gcp-kms://projects/P/"}},
		{"a file", service("file:///etc/fray.key"), nil},
		{"a relative file", service("file://fray.key"), []string{"the path must be absolute, with three slashes: file:///path/to/key"}},
		{"a path", service("/etc/fray.key"), []string{`KMS key "/etc/fray.key": want gcp-kms://`, "or file:///path/to/key"}},
		{"another service's", service("aws-kms://alias/x"), nil}, // known only where it is opened
		{"a key that is no text", service("file:///\xff"), []string{"has control characters or is not UTF-8"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.policy.Validate()
			if test.want == nil {
				if err != nil {
					t.Errorf("got %v, want nil", err)
				}
				return
			}
			wantError(t, err, nil, test.want...)
			if strings.Contains(err.Error(), secret[16:30]) || strings.Contains(err.Error(), strings.Split(ed.secret, "\n")[1]) {
				t.Errorf("the message tells a secret key: %v", err)
			}
			if _, _, newErr := keyring.New(t.Context(), test.policy, nil); newErr == nil || newErr.Error() != err.Error() {
				t.Errorf("New says %v, want %v", newErr, err)
			}
		})
	}
}

// mistype mistypes the last letter.
func mistype(recipient string) string {
	last := len(recipient) - 1
	if recipient[last] == 'q' {
		return recipient[:last] + "p"
	}
	return recipient[:last] + "q"
}

func TestLongRecipientsAreShortened(t *testing.T) {
	hybrid := newHybridIdentity(t)
	_, _, data := lock{policy: recipients(hybrid.public)}.make(t)
	_, err := parse(t, data).Open(t.Context(), keyring.Unlock{})
	wantError(t, err, keyring.ErrLocked, "age1pq1", "…", hybrid.public[len(hybrid.public)-10:])
	if len(err.Error()) > 500 {
		t.Errorf("%d bytes: %v", len(err.Error()), err)
	}
}

func TestLockedForKMS(t *testing.T) {
	denied := &fs.PathError{Op: "permission denied", Path: "x", Err: errors.New("ask the key's owner")}
	fail := func(context.Context, string) (keyring.KMS, error) { return nil, denied }
	google := func(context.Context, string) (keyring.KMS, error) { return memoryKMS{}, nil }
	_, _, data := lock{policy: service(googleKey), unlock: keyring.Unlock{KMS: keyring.Openers{keyring.SchemeGoogle: google}}}.make(t)
	_, err := parse(t, data).Open(t.Context(), keyring.Unlock{KMS: keyring.Openers{keyring.SchemeGoogle: fail}})
	wantError(t, err, keyring.ErrLocked,
		"open the stack's key: the stack's key cannot be opened here: it is wrapped by the KMS key gcp-kms://"+googleKey+": permission denied x: ask")
	if said, ok := errors.AsType[*fs.PathError](err); !errors.Is(err, denied) || !ok || said != denied {
		t.Errorf("%v does not wrap what the service said", err)
	}
	_, err = parse(t, data).Open(t.Context(), keyring.Unlock{})
	wantError(t, err, keyring.ErrLocked, "this program cannot reach KMS keys of gcp-kms://, only of file://")
	_, _, err = keyring.New(t.Context(), service("aws-kms://x"), keyring.Openers{keyring.SchemeGoogle: google})
	wantError(t, err, nil, "wrap the stack's key: this program cannot reach KMS keys of aws-kms://, only of file://, gcp-kms://")
}

// A stack whose key cannot be opened is not a stack without a key.
func TestLockedIsNotAbsent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := keyring.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	_, _, data := lock{policy: service("file://" + file)}.make(t)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, err := parse(t, data).Open(t.Context(), keyring.Unlock{})
	wantError(t, err, keyring.ErrLocked, "wrapped by the KMS key file://"+file, "key file "+file+": file does not exist: put the key there")
	_, _, aged := lock{policy: recipients(newAgeIdentity(t).public)}.make(t)
	_, ageErr := parse(t, aged).Open(t.Context(), keyring.Unlock{IdentityFiles: []string{file}})
	for _, err := range []error{err, ageErr} {
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is an fs.ErrNotExist", err)
		}
	}
}

func TestDamagedPayloadOfKMS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := keyring.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	_, _, data := lock{policy: service("file://" + file)}.make(t)
	at := strings.Index(string(data), `"payload": "`) + 30
	other := byte('A') // of base64, too
	if data[at] == other {
		other = 'B'
	}
	changed := fmt.Appendf(nil, "%s%c%s", data[:at], other, data[at+1:])
	_, err := parse(t, changed).Open(t.Context(), keyring.Unlock{})
	wantError(t, err, keyring.ErrDamaged, "the wrapped key was changed; put back an older version of key.json")
	if errors.Is(err, keyring.ErrLocked) {
		t.Errorf("%v passes for a missing key", err)
	}
}
