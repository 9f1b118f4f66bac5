package keyring_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
)

// A key that is replaced opens what it sealed as long as it is kept as a former one,
// and nothing of the new one; what is wrapped says how many keys it holds.
func TestRewrapWithANewKey(t *testing.T) {
	for _, l := range locks(t) {
		t.Run(l.name, func(t *testing.T) {
			k, old, err := keyring.New(t.Context(), l.policy, l.unlock.KMS)
			if err != nil {
				t.Fatal(err)
			}
			box, err := k.Box(old)
			if err != nil {
				t.Fatal(err)
			}
			first := seal(t, box, keyring.KindState, []byte("first"))
			secrets := state.Secrets{Current: bytes.Repeat([]byte{7}, state.KeySize), Former: [][]byte{old}}
			both, err := k.Rewrap(t.Context(), secrets, k.Policy(), l.unlock.KMS)
			if err != nil {
				t.Fatal(err)
			}
			if both.Version != 2 || !slices.Equal(both.Former, []string{k.ID}) || both.ID == k.ID {
				t.Errorf("got version %d of the key %s with the former ones %v, want 2 with %s", both.Version, both.ID, both.Former, k.ID)
			}
			data, err := both.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := parse(t, data).OpenAll(t.Context(), l.unlock)
			if err != nil || !bytes.Equal(got.Current, secrets.Current) || !slices.EqualFunc(got.Former, secrets.Former, bytes.Equal) {
				t.Fatalf("got %v, %v, want both keys", got, err)
			}
			open, err := both.BoxOf(got)
			if err != nil {
				t.Fatal(err)
			}
			second := seal(t, open, keyring.KindState, []byte("second"))
			for text, document := range map[string][]byte{"first": first, "second": second} {
				if plain, err := open.Open(keyring.KindState, document); err != nil || string(plain) != text {
					t.Errorf("got %q, %v, want %q", plain, err, text)
				}
			}
			if plain, err := box.Open(keyring.KindState, second); !errors.Is(err, keyring.ErrWrongKey) {
				t.Errorf("the former key opens what was sealed after it: %q, %v", plain, err)
			}
			one, err := both.Rewrap(t.Context(), state.Secrets{Current: secrets.Current}, both.Policy(), l.unlock.KMS)
			if err != nil {
				t.Fatal(err)
			}
			if one.Version != 1 || one.Former != nil || one.ID != both.ID || !one.Created.Equal(both.Created) {
				t.Errorf("got %+v, want version 1 of the same key", one.Header)
			}
			alone, err := one.Box(secrets.Current)
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := alone.Open(keyring.KindState, first); !errors.Is(err, keyring.ErrWrongKey) {
				t.Errorf("a key that was removed opens: %q, %v", plain, err)
			}
			if _, err := one.Rewrap(t.Context(), state.Secrets{Current: old}, one.Policy(), l.unlock.KMS); err == nil {
				t.Error("a former key replaces the one that replaced it")
			}
		})
	}
}

// TestTooManyFormerKeys: each former key is needed, so that none is left out silently.
func TestTooManyFormerKeys(t *testing.T) {
	for _, l := range locks(t) {
		t.Run(l.name, func(t *testing.T) {
			k, old, err := keyring.New(t.Context(), l.policy, l.unlock.KMS)
			if err != nil {
				t.Fatal(err)
			}
			former := [][]byte{old}
			for n := range 64 {
				former = append(former, bytes.Repeat([]byte{byte(n + 8)}, state.KeySize))
			}
			secrets := state.Secrets{Current: bytes.Repeat([]byte{7}, state.KeySize), Former: former[:64]}
			most, err := k.Rewrap(t.Context(), secrets, k.Policy(), l.unlock.KMS)
			if err != nil || len(most.Former) != 64 {
				t.Fatalf("with 64 former keys: %v", err)
			}
			secrets.Former = former
			_, err = k.Rewrap(t.Context(), secrets, k.Policy(), l.unlock.KMS)
			if many, ok := errors.AsType[*keyring.TooManyFormerError](err); !ok || many.Keys != 65 || !strings.Contains(err.Error(), "fray apply") {
				t.Errorf("with 65 former keys: got %v, want an error that says how to go on", err)
			}
		})
	}
}
