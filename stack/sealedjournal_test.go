package stack

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// The journal of an encrypted state is encrypted, too. A rekey seals it anew as one with its
// snapshot: no job looks changed meanwhile, and nothing needs the former key afterwards.
func TestRekeyOfAStateWithAJournal(t *testing.T) {
	kms := filepath.Join(t.TempDir(), "kms")
	if err := keyring.CreateKeyFile(kms); err != nil {
		t.Fatal(err)
	}
	inner := storetest.NewMemory()
	k := &Keys{inner: inner, cache: filepath.Join(t.TempDir(), "key"), declared: &schema.Encryption{KMSKey: "file://" + kms}}
	if err := k.Provide(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s := &Stack{Store: k.store(), Keys: k}
	key, err := k.key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	doc := &state.Document{Lineage: "0123456789abcdef", Serial: 1, Nonce: "first", Storage: state.Storage{Journal: &state.Journal{ID: "j", Slots: 4}}}
	token, err := schema.Secret("hunter2").Seal(key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		doc.Desired.Jobs = append(doc.Desired.Jobs, schema.Job{Addr: schema.Address{Kind: schema.KindJob, Name: fmt.Sprint("job", i)}, Command: []schema.Text{token}})
	}
	doc.Jobs = map[schema.Address]*state.Job{}
	for i := range doc.Desired.Jobs {
		spec := &doc.Desired.Jobs[i]
		digest, err := schema.DigestOf(spec)
		if err != nil {
			t.Fatal(err)
		}
		doc.Jobs[spec.Addr] = &state.Job{ID: spec.Addr.Name, Spec: spec, Digest: digest, Status: schema.JobRunning}
	}
	data, err := state.Encode(*doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	w := apply.Rewriter{Store: s.Store, Epoch: 1, Valid: func() error { return nil }}
	first := doc.Desired.Jobs[0].Addr
	edit := func(status schema.JobStatus) {
		t.Helper()
		stepper, err := apply.New(t.Context(), apply.Config{Store: s.Store, Epoch: 1, Valid: w.Valid})
		if err != nil {
			t.Fatal(err)
		}
		next := stepper.Document().Clone()
		j := *next.Jobs[first]
		j.Status = status
		next.Jobs[first] = &j
		if err := stepper.Accept(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	edit(schema.JobSucceeded)
	check := func(when string) {
		t.Helper()
		read, _, err := s.Present(t.Context())
		if err != nil || read == nil {
			t.Fatalf("%s: got %v, %v, want the state", when, read, err)
		}
		key, err := k.key(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for addr, j := range read.Jobs {
			digest, err := schema.DigestOf(j.Spec)
			if err != nil || digest != j.Digest {
				t.Errorf("%s: %s has digest %s, %v, want that of its spec, %s", when, addr, j.Digest, err, digest)
			}
			if text, err := j.Spec.Command[0].Reveal(key); err != nil || text != "hunter2" {
				t.Errorf("%s: %s: got %q, %v, want the secret", when, addr, text, err)
			}
		}
		if got := read.Jobs[first].Status; got != schema.JobSucceeded {
			t.Errorf("%s: got %s, want what the journal has", when, got)
		}
	}
	check("before")
	entry, err := inner.Get(t.Context(), store.JournalKey(0))
	if err != nil || !keyring.IsEncrypted(entry.Data) {
		t.Errorf("an entry is not encrypted: %v", err)
	}
	if err := k.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("with both keys")
	if err := s.ResealState(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := k.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("with the new key")
	edit(schema.JobSucceeded)
	check("one save later")
}
