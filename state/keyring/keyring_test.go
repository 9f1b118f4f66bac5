package keyring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
)

// lock is a policy and what opens the keys that it wraps.
type lock struct {
	name   string
	policy keyring.Policy
	unlock keyring.Unlock
}

// locks are one of each form.
func locks(t *testing.T) []lock {
	t.Helper()
	dir := t.TempDir()
	native, ed, rsa := newAgeIdentity(t), newEd25519(t, "alice@laptop"), newRSA(t, "ci")
	quantum := newHybridIdentity(t)
	file := filepath.Join(dir, "kms.key")
	if err := keyring.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	google := memoryKMS{}
	opener := keyring.Openers{keyring.SchemeGoogle: func(_ context.Context, key string) (keyring.KMS, error) {
		if key != "gcp-kms://"+googleKey {
			return nil, fmt.Errorf("asked for %s", key)
		}
		return google, nil
	}}
	with := func(p person) keyring.Unlock {
		return keyring.Unlock{IdentityFiles: []string{p.file(t)}}
	}
	return []lock{
		{"plain", keyring.Policy{}, keyring.Unlock{}},
		{"age", keyring.Policy{Recipients: []string{native.public}}, with(native)},
		{"post-quantum age", keyring.Policy{Recipients: []string{quantum.public}}, with(quantum)},
		{"ed25519", keyring.Policy{Recipients: []string{ed.public}}, with(ed)},
		{"rsa", keyring.Policy{Recipients: []string{rsa.public}}, with(rsa)},
		{"the last of several", keyring.Policy{Recipients: []string{native.public, ed.public, rsa.public}}, with(rsa)},
		{"file", keyring.Policy{KMSKey: "file://" + file}, keyring.Unlock{}},
		{"google", keyring.Policy{KMSKey: "gcp-kms://" + googleKey}, keyring.Unlock{KMS: opener}},
		{"google, by its bare name", keyring.Policy{KMSKey: googleKey}, keyring.Unlock{KMS: opener}},
	}
}

const googleKey = "projects/acme/locations/global/keyRings/fray/cryptoKeys/state"

// memoryKMS encrypts nothing, so that a test can see what it was given.
type memoryKMS struct{}

func (memoryKMS) Encrypt(_ context.Context, plaintext []byte) ([]byte, error) {
	return append([]byte("wrapped:"), plaintext...), nil
}

func (memoryKMS) Decrypt(_ context.Context, ciphertext []byte) ([]byte, error) {
	plaintext, ok := bytes.CutPrefix(ciphertext, []byte("wrapped:"))
	if !ok {
		return nil, keyring.ErrDamaged
	}
	return plaintext, nil
}

// make returns a new key, the secret, and the object as it is kept.
func (l lock) make(t *testing.T) (*keyring.Keyring, []byte, []byte) {
	t.Helper()
	k, secret, err := keyring.New(t.Context(), l.policy, l.unlock.KMS)
	if err != nil {
		t.Fatal(err)
	}
	data, err := k.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return k, secret, data
}

func parse(t *testing.T, data []byte) *keyring.Keyring {
	t.Helper()
	k, err := keyring.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestEveryFormOpens(t *testing.T) {
	for _, l := range locks(t) {
		t.Run(l.name, func(t *testing.T) {
			made, secret, data := l.make(t)
			k := parse(t, data)
			got, err := k.Open(t.Context(), l.unlock)
			if err != nil || !bytes.Equal(got, secret) || len(secret) != state.KeySize {
				t.Fatalf("opened %x, %v, want %x", got, err, secret)
			}
			if !k.Matches(l.policy) || k.ID != made.ID {
				t.Errorf("got %+v, want what was made, %+v", k.Header, made.Header)
			}
			if id, err := keyring.ID(secret); err != nil || id != k.ID {
				t.Errorf("the key is %s, %v, and the object says %s", id, err, k.ID)
			}
			if age := time.Since(k.Created); age < 0 || age > time.Minute {
				t.Errorf("created %v ago", age)
			}
			if clear := bytes.Contains(data, encoded(t, secret)); clear != (l.name == "plain") {
				t.Errorf("the key stands in clear: %v\n%s", clear, data)
			}
		})
	}
}

func encoded(t *testing.T, secret []byte) []byte {
	t.Helper()
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Trim(quoted, `"`)
}

func TestNewKeysDiffer(t *testing.T) {
	one, _, _ := lock{}.make(t)
	other, _, _ := lock{}.make(t)
	if one.ID == other.ID {
		t.Errorf("two new keys are both %s", one.ID)
	}
}

// Every change of an object that is noticed at all is an error, and what is not
// noticed changes nothing: the case of a field's name, say.
func TestChangedObjectDoesNotOpen(t *testing.T) {
	for _, l := range locks(t) {
		t.Run(l.name, func(t *testing.T) {
			made, secret, data := l.make(t)
			harmless, step := 0, 1
			if texts := fmt.Sprint(l.policy.Recipients); strings.Contains(texts, "ssh-") || strings.Contains(texts, "age1pq") {
				step = 29 // they take their time
			}
			for i := 0; i < len(data); i += step {
				changed := bytes.Clone(data)
				changed[i] ^= 1 << (i % 7)
				k, err := keyring.Parse(changed)
				if err != nil {
					continue
				}
				got, err := k.Open(t.Context(), l.unlock)
				if err != nil {
					continue
				}
				harmless++
				if !bytes.Equal(got, secret) || fmt.Sprint(k.Header) != fmt.Sprint(made.Header) {
					t.Errorf("with byte %d changed, %q: opened %x, %+v", i, changed[max(0, i-20):min(len(changed), i+20)], got, k.Header)
				}
			}
			if harmless > len(data)/4 {
				t.Errorf("%d of %d changes went unnoticed", harmless, len(data))
			}
		})
	}
}

func TestCutObjectIsDamaged(t *testing.T) {
	_, _, data := lock{}.make(t)
	for n := range len(data) - 2 { // after the last brace is a line's end
		if _, err := keyring.Parse(data[:n]); !errors.Is(err, keyring.ErrDamaged) {
			t.Fatalf("%d of %d bytes: got %v, want ErrDamaged", n, len(data), err)
		}
	}
}

func TestSwappedFieldsAreNoticed(t *testing.T) {
	native := newAgeIdentity(t)
	stranger := newAgeIdentity(t)
	l := lock{policy: keyring.Policy{Recipients: []string{native.public}}}
	_, _, data := l.make(t)
	data = bytes.Replace(data, []byte(native.public), []byte(stranger.public), 1)
	_, err := parse(t, data).Open(t.Context(), keyring.Unlock{IdentityFiles: []string{native.file(t)}})
	wantError(t, err, keyring.ErrDamaged, "it was changed by hand", "older version of key.json")
}

func TestParseErrors(t *testing.T) {
	const head = `{"fray_key": 1, "id": "0123456789abcdef", "created": "2026-01-01T00:00:00Z", `
	const tail = `, "payload": "AAAA", "mac": "AAAA"}`
	const back = "put back an older version of key.json"
	tests := []struct {
		name, data string
		is         error
		want       string
	}{
		{"empty", " \n", keyring.ErrDamaged, "read the stack's key: it is damaged: it is empty; " + back},
		{"cut", head + `"form": "pl`, keyring.ErrDamaged, "it ends too early; " + back},
		{"no JSON", "hello", keyring.ErrDamaged, "invalid character 'h'"},
		{"an array", "[]", keyring.ErrDamaged, "cannot unmarshal array"},
		{"something else", `{"lineage": "x"}`, keyring.ErrDamaged, "it is no key of fray"},
		{"newer", `{"fray_key": 3, "id": 7}`, keyring.ErrNewer,
			"read the stack's key: it was written by a newer fray: its version is 3, and this fray knows up to 2; use a newer fray"},
		{"no id", strings.Replace(head, "0123456789abcdef", "no", 1) + `"form": "plain"` + tail, keyring.ErrDamaged, `it has no id: "no"`},
		{"an unknown form", head + `"form": "paper"` + tail, keyring.ErrDamaged, `there is no form "paper"`},
		{"no recipients", head + `"form": "age"` + tail, keyring.ErrDamaged, "which does not go with the form age"},
		{"recipients too many", head + `"form": "plain", "recipients": ["age1x"]` + tail, keyring.ErrDamaged, "it has 1 recipients"},
		{"no KMS key", head + `"form": "kms"` + tail, keyring.ErrDamaged, "which does not go with the form kms"},
		{"no payload", head + `"form": "plain", "payload": "", "mac": "AAAA"}`, keyring.ErrDamaged, "it holds no key"},
		{"no checksum", head + `"form": "plain", "payload": "AAAA"}`, keyring.ErrDamaged, "it holds no key"},
		{"no base64", head + `"form": "plain", "payload": "A", "mac": "AAAA"}`, keyring.ErrDamaged, "base64"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := keyring.Parse([]byte(test.data))
			wantError(t, err, test.is, test.want)
		})
	}
}

func TestOpenOfWhatIsNotWhole(t *testing.T) {
	_, secret, data := lock{}.make(t)
	_, _, other := lock{}.make(t)
	field := func(data []byte, name string) string {
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		return fields[name].(string)
	}
	swap := func(name string) []byte {
		return bytes.Replace(data, []byte(field(data, name)), []byte(field(other, name)), 1)
	}
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"another's key", swap("payload"), "it claims to hold the key " + field(data, "id") + " and holds " + field(other, "id")},
		{"another's id", swap("id"), "it claims to hold the key " + field(other, "id")},
		{"another's checksum", swap("mac"), "it was changed by hand"},
		{"a short key", bytes.Replace(data, encoded(t, secret), encoded(t, secret[:31]), 1), "it holds 31 bytes, want 32"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(t, test.data).Open(t.Context(), keyring.Unlock{})
			wantError(t, err, keyring.ErrDamaged, "open the stack's key: it is damaged: ", test.want, "older version of key.json")
		})
	}
}

func TestRewrap(t *testing.T) {
	all := locks(t)
	for _, from := range all {
		for _, to := range all {
			k, secret, data := from.make(t)
			wrapped, err := parse(t, data).Rewrap(t.Context(), state.Secrets{Current: secret}, to.policy, to.unlock.KMS)
			if err != nil {
				t.Fatalf("%s to %s: %v", from.name, to.name, err)
			}
			got, err := wrapped.Open(t.Context(), to.unlock)
			if err != nil || !bytes.Equal(got, secret) {
				t.Errorf("%s to %s: opened %x, %v, want %x", from.name, to.name, got, err, secret)
			}
			if wrapped.ID != k.ID || !wrapped.Created.Equal(k.Created) || !wrapped.Matches(to.policy) {
				t.Errorf("%s to %s: got %+v from %+v", from.name, to.name, wrapped.Header, k.Header)
			}
		}
	}
	k, _, _ := all[0].make(t)
	_, other, _ := all[0].make(t)
	_, err := k.Rewrap(t.Context(), state.Secrets{Current: other}, all[1].policy, nil)
	wantError(t, err, keyring.ErrDamaged, "wrap the stack's key", "it claims to hold the key "+k.ID)
	_, err = k.Rewrap(t.Context(), state.Secrets{}, all[1].policy, nil)
	wantError(t, err, nil, "the stack's key has 0 bytes, want 32")
}

func TestMatches(t *testing.T) {
	one, two, ed := newAgeIdentity(t).public, newAgeIdentity(t).public, newEd25519(t, "alice@laptop").public
	bare := strings.TrimSuffix(ed, " alice@laptop")
	tests := []struct {
		name       string
		have, want keyring.Policy
		same       bool
	}{
		{"plain", keyring.Policy{}, keyring.Policy{}, true},
		{"order", recipients(one, two), recipients(two, one), true},
		{"spaces and duplicates", recipients(one), recipients(" "+one, one), true},
		{"a comment", recipients(ed), recipients(bare), true},
		{"one more", recipients(one), recipients(one, two), false},
		{"one less", recipients(one, two), recipients(one), false},
		{"another", recipients(one), recipients(two), false},
		{"encryption turned on", keyring.Policy{}, recipients(one), false},
		{"encryption turned off", recipients(one), keyring.Policy{}, false},
		{"a key's short name", service("gcp-kms://" + googleKey), service(googleKey), true},
		{"another key", service(googleKey), service(googleKey + "2"), false},
		{"another form", recipients(one), service(googleKey), false},
	}
	opener := keyring.Openers{keyring.SchemeGoogle: func(context.Context, string) (keyring.KMS, error) { return memoryKMS{}, nil }}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k, _, err := keyring.New(t.Context(), test.have, opener)
			if err != nil {
				t.Fatal(err)
			}
			if got := k.Matches(test.want); got != test.same {
				t.Errorf("got %v, want %v", got, test.same)
			}
		})
	}
}

func recipients(texts ...string) keyring.Policy { return keyring.Policy{Recipients: texts} }
func service(key string) keyring.Policy         { return keyring.Policy{KMSKey: key} }

func TestSecretIsNotPrinted(t *testing.T) {
	k, secret, _ := lock{}.make(t)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got, want := fmt.Sprintf(format, k), "(key "+k.ID+", plain)"; got != want {
			t.Errorf("%s: got %s, want %s", format, got, want)
		}
		if got, want := fmt.Sprintf(format, *k), "(key "+k.ID+", plain)"; got != want {
			t.Errorf("%s of the value: got %s, want %s", format, got, want)
		}
		box, err := k.Box(secret)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprintf(format+" "+format, box, *box), "(key "+k.ID+") (key "+k.ID+")"; got != want {
			t.Errorf("%s of a box: got %s, want %s", format, got, want)
		}
	}
}

// wantError checks that err is a sentinel (nil: any) and says all of the texts.
func wantError(t *testing.T, err, is error, texts ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Fatalf("got %v, want %v", err, is)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}
