package keys_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// counted counts what is read of a store, and may refuse all writes.
type counted struct {
	store.Store
	gets, puts atomic.Int64
	readOnly   bool
}

func (c *counted) Get(ctx context.Context, key string) (store.Object, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counted) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	c.puts.Add(1)
	if c.readOnly {
		return 0, &fs.PathError{Op: "put", Path: key, Err: fs.ErrPermission}
	}
	return c.Store.Put(ctx, key, data, want)
}

func newCounted() *counted { return &counted{Store: storetest.NewMemory()} }

func verifier(t *testing.T, keys token.Source) *token.Verifier {
	t.Helper()
	v, err := token.NewVerifier("abc", keys)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func put(t *testing.T, s store.Store, key string, object any) {
	t.Helper()
	data, err := json.Marshal(object)
	if err == nil {
		_, err = s.Put(t.Context(), key, data, store.Any)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func signer(t *testing.T, at token.ID) *token.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := token.NewSigner(private, "abc", at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A command publishes one key for all its tokens, and another one before that
// expires; readers read it once, and again after a while.
func TestCommandsTokensAreVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounted()
		c := keys.NewCommand(s, "abc", "ann")
		v := verifier(t, keys.NewReader(s, nil))
		check := func(puts, gets int64) {
			t.Helper()
			text, err := c.Token(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := v.Verify(t.Context(), text, time.Now()); err != nil || got.Subject != token.SubjectUser || got.User != "ann" {
				t.Errorf("got %+v, %v", got, err)
			}
			if s.puts.Load() != puts || s.gets.Load() != gets {
				t.Errorf("%d writes and %d reads of the store so far, want %d and %d", s.puts.Load(), s.gets.Load(), puts, gets)
			}
		}
		check(1, 1)
		check(1, 1)
		time.Sleep(time.Minute)
		check(1, 2)
		time.Sleep(token.CommandLife - token.UserLife)
		check(2, 3)
		// By a clock that is an hour behind nothing that was published holds.
		if _, err := c.Token(t.Context(), time.Now().Add(-time.Hour)); err != nil || s.puts.Load() != 3 {
			t.Errorf("%v after %d writes, want another key", err, s.puts.Load())
		}
	})
}

// Who may not write gets no token, is told why, and does not try again.
func TestReadersGetNoToken(t *testing.T) {
	s := newCounted()
	s.readOnly = true
	c := keys.NewCommand(s, "abc", "ann")
	for range 2 {
		text, err := c.Token(t.Context(), time.Now())
		if text != "" || !errors.Is(err, keys.ErrMayNotWrite) {
			t.Errorf("got %q, %v; want %v", text, err, keys.ErrMayNotWrite)
		}
	}
	if s.puts.Load() != 1 {
		t.Errorf("it was tried %d times", s.puts.Load())
	}
}

// Keys are found where their role publishes them, and nowhere else.
func TestKeysAreWhereTheirRoleIs(t *testing.T) {
	s := newCounted()
	leader, host := signer(t, token.ID{Role: token.RoleLeader}), signer(t, token.ID{Role: token.RoleHost, Slice: "s", Host: 1})
	put(t, s, store.LeaseKey, store.Lease{Holder: "h", SigningKey: leader.Public()})
	put(t, s, store.HostKey("s", 1), state.HostReport{Slice: "s", Host: 1, SigningKey: host.Public()})
	r := keys.NewReader(s, nil)
	for _, want := range []*token.Signer{leader, host} {
		if got, err := r.Key(t.Context(), want.ID()); err != nil || string(got.Public) != string(want.Public()) {
			t.Errorf("%s: got %+v, %v", want.ID(), got, err)
		}
	}
	for _, id := range []token.ID{
		{Role: token.RoleCommand, Sum: leader.ID().Sum}, {Role: token.RoleLeader, Sum: host.ID().Sum},
		{Role: token.RoleHost, Slice: "s", Host: 0, Sum: host.ID().Sum}, {Role: token.RoleHost, Slice: "s", Host: 1, Sum: leader.ID().Sum},
	} {
		if got, err := r.Key(t.Context(), id); !errors.Is(err, token.ErrUnknownKey) {
			t.Errorf("%s: got %+v, %v; want %v", id, got, err, token.ErrUnknownKey)
		}
	}
	put(t, s, store.LeaseKey, store.Lease{Holder: "h", SigningKey: leader.Public(), Released: true})
	if got, err := keys.NewReader(s, nil).Key(t.Context(), leader.ID()); !errors.Is(err, token.ErrUnknownKey) {
		t.Errorf("of a lease that was released: got %+v, %v; want %v", got, err, token.ErrUnknownKey)
	}
}

// What a reader has of a host's report anyway is not read again.
func TestReportsThatAreKnownAreNotRead(t *testing.T) {
	s := newCounted()
	host := signer(t, token.ID{Role: token.RoleHost, Slice: "s"})
	r := keys.NewReader(s, func(slice string, number int) (state.HostReport, bool) {
		return state.HostReport{Slice: slice, Host: number, SigningKey: host.Public()}, slice == "s"
	})
	if _, err := r.Key(t.Context(), host.ID()); err != nil || s.gets.Load() != 0 {
		t.Errorf("%v after %d reads, want none", err, s.gets.Load())
	}
}

// A key that was removed is refused under the next epoch at once, and else after
// half a minute.
func TestRemovedKeysAreForgotten(t *testing.T) {
	for _, how := range []string{"the next epoch", "time"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCounted()
				c := keys.NewCommand(s, "abc", "ann")
				text, err := c.Token(t.Context(), time.Now())
				if err != nil {
					t.Fatal(err)
				}
				r := keys.NewReader(s, nil)
				r.Forget(1)
				v := verifier(t, r)
				if _, err := v.Verify(t.Context(), text, time.Now()); err != nil {
					t.Fatal(err)
				}
				if n, err := keys.Prune(t.Context(), s, time.Now(), false); n != 0 || err != nil {
					t.Fatalf("pruned %d keys that hold, %v", n, err)
				}
				if n, err := keys.Prune(t.Context(), s, time.Now(), true); n != 1 || err != nil {
					t.Fatalf("removed %d keys, %v; want 1", n, err)
				}
				if how == "time" {
					time.Sleep(31 * time.Second)
				} else {
					r.Forget(2)
				}
				if _, err := v.Verify(t.Context(), text, time.Now()); !errors.Is(err, token.ErrUnknownKey) {
					t.Errorf("replayed: %v, want %v", err, token.ErrUnknownKey)
				}
			})
		})
	}
}

// Expired keys go, and damaged ones, and those that claim to hold for ever.
func TestPrune(t *testing.T) {
	s := newCounted()
	now := time.Now()
	for name, expires := range map[string]time.Time{"old": now.Add(-time.Hour), "new": now.Add(time.Minute), "far": now.Add(1000 * time.Hour)} {
		put(t, s, keys.CommandKey(name), map[string]any{"expires": expires})
	}
	if _, err := s.Put(t.Context(), keys.CommandKey("damaged"), []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	if n, err := keys.Prune(t.Context(), s, now, false); n != 3 || err != nil {
		t.Errorf("pruned %d, %v; want 3", n, err)
	}
	left, err := s.List(t.Context(), keys.CommandPrefix)
	if err != nil || len(left) != 1 || left[0].Key != keys.CommandKey("new") {
		t.Errorf("left are %v, %v", left, err)
	}
}

// Strangers who name keys that there are not cost the store few reads: some at once, and then few
// a second.
func TestMissesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounted()
		r := keys.NewReader(s, nil)
		done := make(chan error)
		const strangers = 1000
		began := time.Now()
		for i := range strangers {
			go func() {
				id := token.ID{Role: token.RoleCommand, Sum: strings.Repeat("ab", 14) + fmt.Sprintf("%04d", i)}
				_, err := r.Key(t.Context(), id)
				done <- err
			}()
		}
		for range strangers {
			if err := <-done; !errors.Is(err, token.ErrUnknownKey) {
				t.Error(err)
			}
		}
		if perSecond := float64(s.gets.Load()) / time.Since(began).Seconds(); perSecond > 40 {
			t.Errorf("%.0f reads a second, want at most 40", perSecond)
		}
	})
}
