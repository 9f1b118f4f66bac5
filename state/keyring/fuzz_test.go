package keyring_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fray-ml/fray/state/keyring"
)

// Whatever is found in the store, it is parsed and opened as what was written,
// or an error of a known kind.
func FuzzParse(f *testing.F) {
	k, secret, err := keyring.New(f.Context(), keyring.Policy{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	data, err := k.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"fray_key":1,"id":"0123456789abcdef","form":"kms","kms_key":"file:///none","payload":"AAAA","mac":"AAAA"}`))
	f.Add([]byte(`{"fray_key":1,"id":"0123456789abcdef","form":"age","recipients":["age1x"],"payload":"YWdl","mac":"AAAA"}`))
	f.Add([]byte(`{"fray_key":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := keyring.Parse(data)
		if err != nil {
			if !errors.Is(err, keyring.ErrDamaged) && !errors.Is(err, keyring.ErrNewer) {
				t.Errorf("got %v, of no kind", err)
			}
			return
		}
		if got, err := k.Open(t.Context(), keyring.Unlock{}); err == nil && !bytes.Equal(got, secret) && k.Form != keyring.FormPlain {
			t.Errorf("opened %x with nothing at hand", got)
		}
		again, err := k.Encode()
		if err != nil {
			t.Fatal(err)
		}
		reparsed, err := keyring.Parse(again)
		if err != nil || reparsed.ID != k.ID || reparsed.Form != k.Form {
			t.Errorf("%s encoded as %s, which is %v, %v", data, again, reparsed, err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	box := lock{policy: keyring.Policy{}}.box(f)
	const plain = "the state"
	sealed := seal(f, box, keyring.KindState, []byte(plain))
	f.Add(sealed)
	f.Add([]byte(`{"fray_encrypted":1,"kind":"state","key":"0123456789abcdef","recipients":["x"],"data":"AAAA"}`))
	f.Add([]byte(`{"fray_encrypted":2}`))
	kinds := []error{keyring.ErrDamaged, keyring.ErrNewer, keyring.ErrWrongKey}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := box.Open(keyring.KindState, data)
		if err == nil && string(got) != plain {
			t.Errorf("opened %q, which was never sealed", got)
		}
		known := err == nil
		for _, kind := range kinds {
			known = known || errors.Is(err, kind)
		}
		if !known {
			t.Errorf("got %v, of no kind", err)
		}
		if locked := keyring.Locked(data); locked == nil {
			t.Error("what is locked is no error")
		}
	})
}

func FuzzIdentities(f *testing.F) {
	f.Add([]byte("# comment\nAGE-SECRET-KEY-1AAAA\n"))
	f.Add([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"))
	owner, err := keyring.Parse([]byte(`{"fray_key":1,"id":"0123456789abcdef","form":"age","recipients":["age1x"],"payload":"YWdl","mac":"AAAA"}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := person{secret: string(data)}.file(t)
		if got, err := owner.Open(t.Context(), keyring.Unlock{IdentityFiles: []string{path}}); err == nil {
			t.Errorf("opened %x", got)
		}
	})
}
