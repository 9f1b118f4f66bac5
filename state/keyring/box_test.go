package keyring_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state/keyring"
)

func (l lock) box(t testing.TB) *keyring.Box {
	t.Helper()
	k, secret, err := keyring.New(t.Context(), l.policy, l.unlock.KMS)
	if err != nil {
		t.Fatal(err)
	}
	box, err := k.Box(secret)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func seal(t testing.TB, box *keyring.Box, kind keyring.Kind, plain []byte) []byte {
	t.Helper()
	data, err := box.Seal(kind, plain)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestBoxOpensWhatItSealed(t *testing.T) {
	noise := make([]byte, 100_000)
	rand.Read(noise)
	documents := map[string][]byte{
		"empty": {}, "short": []byte("{}"), "repetitive": bytes.Repeat([]byte("state "), 1<<16), "noise": noise,
	}
	for _, l := range locks(t) {
		box := l.box(t)
		for name, plain := range documents {
			for _, kind := range []keyring.Kind{keyring.KindState, keyring.KindPlan} {
				data := seal(t, box, kind, plain)
				if got, err := box.Open(kind, data); err != nil || !bytes.Equal(got, plain) {
					t.Errorf("%s, %s %s: got %d bytes, %v, want %d", l.name, name, kind, len(got), err, len(plain))
				}
				if !keyring.IsEncrypted(data) {
					t.Errorf("%s, %s %s: passes for one in clear", l.name, name, kind)
				}
				if max := len(plain)*4/3 + 3000; len(data) > max {
					t.Errorf("%s, %s %s: %d bytes, want at most %d", l.name, name, kind, len(data), max)
				}
			}
		}
	}
}

func TestEqualDocumentsAreSealedDifferently(t *testing.T) {
	box := lock{}.box(t)
	if bytes.Equal(seal(t, box, keyring.KindState, []byte("x")), seal(t, box, keyring.KindState, []byte("x"))) {
		t.Error("who reads the store sees that nothing has changed")
	}
}

// An encrypted document survives being laid out anew, by jq say, as long as
// nothing that it says is changed.
func TestLayoutDoesNotMatter(t *testing.T) {
	box := lock{policy: recipients(newEd25519(t, "<alice@laptop> ü").public)}.box(t)
	var indented bytes.Buffer
	if err := json.Indent(&indented, seal(t, box, keyring.KindPlan, []byte("the plan")), "", "\t"); err != nil {
		t.Fatal(err)
	}
	data := append(indented.Bytes(), '\n', '\n')
	if got, err := box.Open(keyring.KindPlan, data); err != nil || string(got) != "the plan" || !keyring.IsEncrypted(data) {
		t.Errorf("got %q, %v", got, err)
	}
}

// Every bit of a document counts, but for such as the case of its fields' names.
func TestChangedDocumentDoesNotOpen(t *testing.T) {
	const plain = "the state, which is long enough to be worth its compression, compression, compression"
	for _, l := range locks(t) {
		if l.name != "plain" && l.name != "ed25519" && l.name != "file" {
			continue // as one of these
		}
		box := l.box(t)
		data := seal(t, box, keyring.KindState, []byte(plain))
		label, err := keyring.ReadLabel(data)
		if err != nil {
			t.Fatal(err)
		}
		harmless := 0
		for i := range data {
			for bit := range 8 {
				changed := bytes.Clone(data)
				changed[i] ^= 1 << bit
				got, err := box.Open(keyring.KindState, changed)
				if err != nil {
					continue
				}
				harmless++
				if said, _ := keyring.ReadLabel(changed); string(got) != plain || fmt.Sprint(said) != fmt.Sprint(label) {
					t.Errorf("%s: bit %d of byte %d: opened %q, %+v", l.name, bit, i, got, said)
				}
			}
		}
		if harmless > 80 {
			t.Errorf("%s: %d of %d changes went unnoticed", l.name, harmless, 8*len(data))
		}
	}
}

func TestCutDocumentIsDamaged(t *testing.T) {
	box := lock{}.box(t)
	data := seal(t, box, keyring.KindState, []byte("the state"))
	for n := range len(data) - 2 { // after the last brace is a line's end
		if got, err := box.Open(keyring.KindState, data[:n]); !errors.Is(err, keyring.ErrDamaged) {
			t.Fatalf("%d of %d bytes: got %q, %v, want ErrDamaged", n, len(data), got, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	owner := newAgeIdentity(t)
	box, plain := lock{policy: recipients(owner.public)}.box(t), lock{}.box(t)
	other := lock{policy: service("file://" + keyFile(t, bytes.Repeat([]byte{1}, 32)))}.box(t)
	state := seal(t, box, keyring.KindState, []byte("{}"))
	id := func(data []byte) string {
		label, err := keyring.ReadLabel(data)
		if err != nil {
			t.Fatal(err)
		}
		return label.Key
	}
	otherState := seal(t, other, keyring.KindState, []byte("{}"))
	plainState := seal(t, plain, keyring.KindState, []byte("{}"))
	replace := func(old, new string) []byte { return bytes.Replace(state, []byte(old), []byte(new), 1) }
	tests := []struct {
		name string
		data []byte
		is   error
		want string
	}{
		{"another kind", seal(t, box, keyring.KindPlan, []byte("{}")), keyring.ErrWrongKind,
			"decrypt state: it is another kind of document: it is a plan"},
		{"a kind that was changed", replace(`"kind":"state"`, `"kind":"plan"`), keyring.ErrDamaged, "it is not what was written; put back a copy of it"},
		{"another key of a service", otherState, keyring.ErrWrongKey,
			fmt.Sprintf(`decrypt state: it was encrypted with another key: it needs the key %q, wrapped by the KMS key file://`, id(otherState))},
		{"another key in clear", plainState, keyring.ErrWrongKey,
			fmt.Sprintf(`it needs the key %q, and this stack's is %q`, id(plainState), id(state))},
		{"another key's document under this one's name", bytes.Replace(plainState, []byte(id(plainState)), []byte(id(state)), 1),
			keyring.ErrDamaged, "it is not what was written"},
		{"another recipient", replace(owner.public, newAgeIdentity(t).public), keyring.ErrDamaged, "it is not what was written"},
		{"newer", replace(`"fray_encrypted":1`, `"fray_encrypted":2`), keyring.ErrNewer,
			"decrypt state: it was written by a newer fray: its version is 2, and this fray knows up to 1; use a newer fray"},
		{"newer, in another form", []byte(`{"fray_encrypted": 3, "kind": 7}`), keyring.ErrNewer, "its version is 3"},
		{"older than the first", replace(`"fray_encrypted":1`, `"fray_encrypted":0`), keyring.ErrDamaged, "there is no version 0; put back a copy of it"},
		{"in clear", []byte("{}"), keyring.ErrDamaged, "it is no encrypted document"},
		{"empty", nil, keyring.ErrDamaged, "it is no encrypted document"},
		{"no data", replace(`"data":"`, `"other":"`), keyring.ErrDamaged, "it ends too early"},
		{"cut", state[:len(state)-20], keyring.ErrDamaged, "it is damaged: it ends too early; put back a copy of it"},
		{"followed by something", append(bytes.Clone(state), '{'), keyring.ErrDamaged, "invalid character '{' after top-level value"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := box.Open(keyring.KindState, test.data)
			wantError(t, err, test.is, test.want)
		})
	}
	_, err := box.Open(keyring.KindState, seal(t, lock{policy: recipients(owner.public)}.box(t), keyring.KindState, nil))
	wantError(t, err, keyring.ErrWrongKey, "wrapped for "+owner.public)
}

// The error of a document that cannot be opened names its recipients.
func TestLocked(t *testing.T) {
	alice := newEd25519(t, "alice@laptop")
	forAlice := seal(t, lock{policy: recipients(alice.public)}.box(t), keyring.KindPlan, nil)
	byFile := seal(t, lock{policy: service("file://" + keyFile(t, bytes.Repeat([]byte{1}, 32)))}.box(t), keyring.KindState, nil)
	wantError(t, keyring.Locked(forAlice), keyring.ErrLocked,
		"the stack's key cannot be opened here: this plan is encrypted with the key ", "wrapped for ssh-ed25519 ", "(alice@laptop); set FRAY_AGE_IDENTITY to the file of an identity that is one of these")
	wantError(t, keyring.Locked(byFile), keyring.ErrLocked, "this state is encrypted with the key ",
		"wrapped by the KMS key file:///", "; have its owner let you decrypt with it")
	wantError(t, keyring.Locked(seal(t, lock{}.box(t), keyring.KindPlan, nil)), keyring.ErrLocked,
		`"; read it where the key of its stack can be read`)
	wantError(t, keyring.Locked([]byte("{}")), keyring.ErrDamaged, "it is no encrypted document")
}

func TestIsEncrypted(t *testing.T) {
	for data, want := range map[string]bool{
		``: false, `{`: false, `[]`: false, `null`: false, "\xff": false, `{"format_version": 1}`: false,
		`{"x": "fray_encrypted"}`: false, `{"x": 1, "fray_encrypted": 1}`: false, `"fray_encrypted"`: false,
		`{"fray_encrypted": 1`: true, "\n {\n\t\"fray_encrypted\": 99}": true,
	} {
		if got := keyring.IsEncrypted([]byte(data)); got != want {
			t.Errorf("%q: got %v, want %v", data, got, want)
		}
	}
}

func TestBoxNeedsItsKey(t *testing.T) {
	k, secret, _ := lock{}.make(t)
	_, other, _ := lock{}.make(t)
	_, err := k.Box(other)
	wantError(t, err, keyring.ErrDamaged, "use the stack's key", "it claims to hold the key "+k.ID)
	_, err = k.Box(secret[1:])
	wantError(t, err, nil, "the stack's key has 31 bytes, want 32")
}

// The formats are for ever: what was written once must open.
func TestWhatWasWrittenBeforeOpens(t *testing.T) {
	const key = `{"fray_key": 1, "id": "ef7637ae86981687", "created": "2026-11-21T12:15:23Z", "form": "plain",
		"payload": "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=", "mac": "s+RlnmfyvcD0ND+yaBzcNYl1Sj2ZbpJDii374JYRKbw="}`
	const document = `{"fray_encrypted":1,"kind":"plan","key":"ef7637ae86981687",
		"data":"2JaxgJTl8cEjITQCCH9g+Xkc+nJkDERRgy7dbG7hLABTzwRm8xHsiZ5ckx0m"}`
	secret, err := parse(t, []byte(key)).Open(t.Context(), keyring.Unlock{})
	if err != nil || !bytes.Equal(secret, bytes.Repeat([]byte{7}, 32)) {
		t.Fatalf("got %x, %v", secret, err)
	}
	box, err := parse(t, []byte(key)).Box(secret)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := box.Open(keyring.KindPlan, []byte(document)); err != nil || string(got) != "the plan" {
		t.Errorf("got %q, %v", got, err)
	}
}

// stateLike is about n bytes of JSON as repetitive as a state is.
func stateLike(n int) []byte {
	random := mathrand.New(mathrand.NewPCG(1, 2))
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"id":"%016x","spec":{"addr":"job.train[%d]","command":["python","-m","train","--worker=%d"],"digest":"v1:%032x"},`+
			`"status":"running","slices":["s-%08x"],"attempts":[{"number":1,"generation":%d,"started_at":"2026-01-01T00:%02d:%02dZ"}]},`,
			random.Uint64(), i, i, random.Uint64(), random.Uint32(), random.Int64(), i/60%60, i%60)
	}
	return b.Bytes()
}

// The baseline is what the JSON package takes to check the same bytes.
func BenchmarkBox(b *testing.B) {
	plain := stateLike(10 << 20)
	box := lock{}.box(b)
	data := seal(b, box, keyring.KindState, plain)
	b.Logf("%d bytes become %d", len(plain), len(data))
	quoted := []byte("[" + strings.TrimSuffix(string(plain), ",") + "]")
	actions := []struct {
		name string
		do   func() bool
	}{
		{"json", func() bool { return json.Valid(quoted) }},
		{"seal", func() bool { _, err := box.Seal(keyring.KindState, plain); return err == nil }},
		{"open", func() bool { _, err := box.Open(keyring.KindState, data); return err == nil }},
	}
	for _, action := range actions {
		b.Run(action.name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if !action.do() {
					b.Fatal("it failed")
				}
			}
		})
	}
}
