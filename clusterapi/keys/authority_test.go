package keys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func encode(t *testing.T, s store.Store, key string, object any) {
	t.Helper()
	data, err := store.Encode(object)
	if err == nil {
		_, err = s.Put(t.Context(), key, data, store.Any)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// host reports a key of its own.
func host(t *testing.T, s store.Store, slice string) state.HostReport {
	t.Helper()
	_, public, err := keys.NewIdentityKey()
	if err != nil {
		t.Fatal(err)
	}
	h := state.HostReport{Slice: slice, IdentityKey: public}
	encode(t, s, store.HostKey(slice, 0), h)
	return h
}

// assigned is an assignment as a leader writes it.
func assigned(t *testing.T, s store.Store, by *keys.Issuer, h state.HostReport) state.Assignment {
	t.Helper()
	a := state.Assignment{Slice: h.Slice, Stack: "abc", Generation: 1, Run: &state.Run{Spec: schema.Job{Namespace: "rl"}}}
	if err := by.Certify(t.Context(), &a, []state.HostReport{h}); err != nil {
		t.Fatal(err)
	}
	encode(t, s, store.AssignKey(h.Slice), a)
	return a
}

func authorities(t *testing.T, s store.Store) []keys.Authority {
	t.Helper()
	all, _, err := keys.ReadAuthorities(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func issuedBy(t *testing.T, a state.Assignment, by keys.Authority) bool {
	t.Helper()
	return len(a.Run.Certificates) == 1 && identity.IssuedBy(a.Run.Certificates[0].DER, by.Certificate)
}

// A leader publishes one authority, before what it certifies, however many hosts there
// are; what is certified stays as it is.
func TestIssuer(t *testing.T) {
	s := newCounted()
	leader := keys.NewIssuer(s, 1)
	one, two := host(t, s, "one"), host(t, s, "two")
	puts := s.puts.Load()
	a, b := assigned(t, s, leader, one), assigned(t, s, leader, two)
	if made := s.puts.Load() - puts; made != 3 { // both assignments, and the authority
		t.Errorf("%d writes, want 3", made)
	}
	all := authorities(t, s)
	if len(all) != 1 || all[0].Epoch != 1 || !issuedBy(t, a, all[0]) || !issuedBy(t, b, all[0]) {
		t.Errorf("authorities %+v have issued %+v and %+v", all, a.Run, b.Run)
	}
	again := a
	if err := keys.NewIssuer(s, 2).Certify(t.Context(), &again, []state.HostReport{one}); err != nil || again.Run != a.Run {
		t.Errorf("what was certified is certified again, %v", err)
	}
}

// Authorities of earlier leaders stay while something that they certified is assigned,
// those of commands until they expire.
func TestPruneAuthorities(t *testing.T) {
	s := newCounted()
	now := time.Now()
	first, second := keys.NewIssuer(s, 1), keys.NewIssuer(s, 2)
	stays, goes := host(t, s, "stays"), host(t, s, "goes")
	assigned(t, s, first, stays)
	assigned(t, s, second, goes)
	if _, err := keys.Join(t.Context(), s, "abc", "ann", now); err != nil {
		t.Fatal(err)
	}
	encode(t, s, store.AssignKey("goes"), state.Assignment{Slice: "goes", Generation: 2})
	for _, step := range []struct {
		name  string
		epoch uint64
		at    time.Time
		want  int
	}{
		{"under the second leader", 2, now, 3},
		{"under the third, the second's has nothing", 3, now, 2},
		{"once the command's has expired", 3, now.Add(time.Hour), 1},
	} {
		if err := keys.PruneAuthorities(t.Context(), s, step.at, step.epoch); err != nil {
			t.Fatal(err)
		}
		if all := authorities(t, s); len(all) != step.want || all[0].Epoch != 1 {
			t.Errorf("%s: %+v, want %d", step.name, all, step.want)
		}
	}
}

// An apply without a controller removes what commands have left behind, and reads no
// assignment for it until authorities of many leaders are there.
func TestPruneExpired(t *testing.T) {
	s := newCounted()
	now := time.Now()
	put(t, s, keys.CommandKey("old"), map[string]any{"expires": now.Add(-time.Hour)})
	put(t, s, keys.CommandKey("new"), map[string]any{"expires": now.Add(time.Minute)})
	assigned(t, s, keys.NewIssuer(s, 1), host(t, s, "stays"))
	if _, err := keys.Join(t.Context(), s, "abc", "ann", now); err != nil {
		t.Fatal(err)
	}
	for epoch := uint64(2); epoch < 20; epoch++ {
		gone := store.AssignKey(fmt.Sprintf("goes%d", epoch))
		assigned(t, s, keys.NewIssuer(s, epoch), host(t, s, fmt.Sprintf("goes%d", epoch)))
		if err := s.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		if epoch == 2 {
			if err := keys.PruneExpired(t.Context(), s, now.Add(time.Hour), 3); err != nil {
				t.Fatal(err)
			}
			if all := authorities(t, s); len(all) != 2 || all[0].Epoch != 1 || all[1].Epoch != 2 {
				t.Errorf("got %+v, want those of the leaders", all)
			}
		}
	}
	if err := keys.PruneExpired(t.Context(), s, now, 20); err != nil {
		t.Fatal(err)
	}
	if all := authorities(t, s); len(all) != 1 || all[0].Epoch != 1 {
		t.Errorf("got %+v, want the one that has certified what is assigned", all)
	}
	left, err := s.List(t.Context(), keys.CommandPrefix)
	if err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A damaged assignment keeps nothing from being removed but what may have certified it.
func TestPruneAuthoritiesBesideADamagedAssignment(t *testing.T) {
	s := newCounted()
	now := time.Now()
	assigned(t, s, keys.NewIssuer(s, 1), host(t, s, "one"))
	if _, err := keys.Join(t.Context(), s, "abc", "ann", now); err != nil {
		t.Fatal(err)
	}
	whole, err := s.Get(t.Context(), store.AssignKey("one"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(data []byte) {
		t.Helper()
		if _, err := s.Put(t.Context(), store.AssignKey("one"), data, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	wantLeft := func(when string, want int) {
		t.Helper()
		if err := keys.PruneAuthorities(t.Context(), s, now.Add(time.Hour), 2); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if all := authorities(t, s); len(all) != want {
			t.Errorf("%s %d authorities are left, want %d", when, len(all), want)
		}
	}
	put(bytes.Replace(whole.Data, []byte(`"slice"`), []byte(`"slixe"`), 1))
	wantLeft("while it is damaged", 1)
	encode(t, s, store.AssignKey("one"), state.Assignment{Slice: "one", Generation: 2})
	wantLeft("once it is written anew and runs nothing", 0)
}

// After rekey nothing that was certified before counts, and what is assigned has
// another certificate of the same host's key, and is otherwise as it was.
func TestRecertify(t *testing.T) {
	s := newCounted()
	one := host(t, s, "one")
	before := assigned(t, s, keys.NewIssuer(s, 1), one)
	encode(t, s, store.AssignKey("idle"), state.Assignment{Slice: "idle", Generation: 1})
	if _, err := keys.Join(t.Context(), s, "abc", "ann", time.Now()); err != nil {
		t.Fatal(err)
	}
	damaged := store.AssignKey("a-damaged")
	if _, err := s.Put(t.Context(), damaged, []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	if n, left, err := keys.Recertify(t.Context(), s, 7, func() error { return nil }); n != 1 || err != nil || !slices.Equal(left, []string{damaged}) {
		t.Fatalf("certified %d slices, all but %v, %v; want 1, all but the damaged one", n, left, err)
	}
	object, err := s.Get(t.Context(), store.AssignKey("one"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := store.DecodeAssignment(object.Data)
	if err != nil {
		t.Fatal(err)
	}
	all := authorities(t, s)
	if len(all) != 1 || all[0].Epoch != 7 || !issuedBy(t, after, all[0]) || issuedBy(t, before, all[0]) || after.Generation != before.Generation {
		t.Errorf("authorities %+v, assignment %+v; want one new authority and its certificate", all, after)
	}
	lost := errors.New("lease lost")
	if _, _, err := keys.Recertify(t.Context(), s, 8, func() error { return lost }); !errors.Is(err, lost) {
		t.Errorf("without the lease: %v, want %v", err, lost)
	}
}

// A user who may not write joins no namespace.
func TestReadersJoinNothing(t *testing.T) {
	s := newCounted()
	s.readOnly = true
	if _, err := keys.Join(t.Context(), s, "abc", "ann", time.Now()); !errors.Is(err, keys.ErrMayNotWrite) {
		t.Errorf("got %v, want %v", err, keys.ErrMayNotWrite)
	}
}

// A command's identity is of an authority that is published for as long as its key.
func TestMember(t *testing.T) {
	s := newCounted()
	now := time.Now()
	m, err := keys.Join(t.Context(), s, "abc", "ann", now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.File(context.WithoutCancel(t.Context()), "rl")
	if err != nil {
		t.Fatal(err)
	}
	_, certificate, err := identity.ParseFile(text)
	all := authorities(t, s)
	if err != nil || len(all) != 1 || !identity.IssuedBy(certificate, all[0].Certificate) || !all[0].Expires.Equal(now.UTC().Add(token.CommandLife)) {
		t.Errorf("%v; authorities %+v", err, all)
	}
	if err := m.Renew(t.Context(), now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if all := authorities(t, s); len(all) != 1 || !all[0].Expires.Equal(now.UTC().Add(token.CommandLife+time.Minute)) {
		t.Errorf("renewed: %+v", all)
	}
}
