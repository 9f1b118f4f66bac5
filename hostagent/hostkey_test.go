package hostagent

import (
	"errors"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// A host's agent takes up the stack's new key without a restart, and opens what was
// assigned before as well.
func TestHostKeyFollowsARekey(t *testing.T) {
	old, next := store.NewSecret(), store.NewSecret()
	seal := func(secret []byte) string {
		key, err := state.NewKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := key.Seal("word")
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	before, after := seal(old), seal(next)
	present, reads := state.Secrets{Current: old}, 0
	k := &hostKey{read: func() (state.Secrets, error) {
		reads++
		return present, nil
	}}
	k.warm()
	present = state.Secrets{Current: next} // the former key was removed before the agent met anything sealed
	for _, sealed := range []string{before, after, before, after} {
		if got, err := k.Open(sealed); err != nil || got != "word" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if reads != 2 {
		t.Errorf("the key was read %d times, want once at first and once for what it did not open", reads)
	}
	if got, err := k.Open(seal(store.NewSecret())); !errors.Is(err, state.ErrOtherKey) {
		t.Errorf("what neither key sealed: got %q, %v", got, err)
	}
}

// A key that cannot be read is read when it is needed.
func TestHostKeyRemembersNoFailure(t *testing.T) {
	secret := store.NewSecret()
	key, err := state.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.Seal("word")
	if err != nil {
		t.Fatal(err)
	}
	denied := errors.New("denied")
	failing := true
	k := &hostKey{read: func() (state.Secrets, error) {
		if failing {
			return state.Secrets{}, denied
		}
		return state.Secrets{Current: secret}, nil
	}}
	k.warm()
	if _, err := k.Open(sealed); !errors.Is(err, denied) {
		t.Errorf("got %v, want that it is denied", err)
	}
	failing = false
	if got, err := k.Open(sealed); err != nil || got != "word" {
		t.Errorf("got %q, %v", got, err)
	}
}
