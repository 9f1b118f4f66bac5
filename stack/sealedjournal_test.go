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

// rekeyed is an encrypted stack whose state has a journal and a secret in each job.
type rekeyed struct {
	t     *testing.T
	inner *storetest.Memory
	keys  *Keys
	stack *Stack
	first schema.Address // of a job
}

func newRekeyed(t *testing.T) *rekeyed {
	t.Helper()
	kms := filepath.Join(t.TempDir(), "kms")
	if err := keyring.CreateKeyFile(kms); err != nil {
		t.Fatal(err)
	}
	inner := storetest.NewMemory()
	k := &Keys{inner: inner, cache: filepath.Join(t.TempDir(), "key"), declared: &schema.Encryption{KMSKey: "file://" + kms}}
	if err := k.Provide(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r := &rekeyed{t: t, inner: inner, keys: k, stack: &Stack{Store: k.store(), Keys: k}}
	doc := r.document()
	r.first = doc.Desired.Jobs[0].Addr
	data, err := state.Encode(*doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.stack.Store.Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rekeyed) document() *state.Document {
	r.t.Helper()
	key, err := r.keys.key(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	token, err := schema.Secret("hunter2").Seal(key)
	if err != nil {
		r.t.Fatal(err)
	}
	doc := &state.Document{Lineage: "0123456789abcdef", Serial: 1, Nonce: "first", Storage: state.Storage{Journal: &state.Journal{ID: "j", Slots: 4}}}
	for i := range 3 {
		doc.Desired.Jobs = append(doc.Desired.Jobs, schema.Job{Addr: schema.Address{Kind: schema.KindJob, Name: fmt.Sprint("job", i)}, Command: []schema.Text{token}})
	}
	doc.Jobs = map[schema.Address]*state.Job{}
	for i := range doc.Desired.Jobs {
		spec := &doc.Desired.Jobs[i]
		digest, err := schema.DigestOf(spec)
		if err != nil {
			r.t.Fatal(err)
		}
		doc.Jobs[spec.Addr] = &state.Job{ID: spec.Addr.Name, Spec: spec, Digest: digest, Status: schema.JobRunning}
	}
	return doc
}

func (r *rekeyed) rewriter() apply.Rewriter {
	return apply.Rewriter{Store: r.stack.Store, Epoch: 1, Valid: func() error { return nil }}
}

// edit has a controller save that the first job has succeeded.
func (r *rekeyed) edit() {
	r.t.Helper()
	stepper, err := apply.New(r.t.Context(), apply.Config{Store: r.stack.Store, Epoch: 1, Valid: func() error { return nil }})
	if err != nil {
		r.t.Fatal(err)
	}
	next := stepper.Document().Clone()
	j := *next.Jobs[r.first]
	j.Status = schema.JobSucceeded
	next.Jobs[r.first] = &j
	if err := stepper.Accept(r.t.Context(), next); err != nil {
		r.t.Fatal(err)
	}
}

// check checks that what is read was saved and can be opened, and that no job looks changed.
func (r *rekeyed) check(when string) {
	r.t.Helper()
	read, _, err := r.stack.Present(r.t.Context())
	if err != nil || read == nil {
		r.t.Fatalf("%s: got %v, %v, want the state", when, read, err)
	}
	key, err := r.keys.key(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for addr, j := range read.Jobs {
		digest, err := schema.DigestOf(j.Spec)
		if err != nil || digest != j.Digest {
			r.t.Errorf("%s: %s has digest %s, %v, want that of its spec, %s", when, addr, j.Digest, err, digest)
		}
		if text, err := j.Spec.Command[0].Reveal(key); err != nil || text != "hunter2" {
			r.t.Errorf("%s: %s: got %q, %v, want the secret", when, addr, text, err)
		}
	}
	if got := read.Jobs[r.first].Status; got != schema.JobSucceeded {
		r.t.Errorf("%s: got %s, want what the journal has", when, got)
	}
}

// The journal of an encrypted state is encrypted, too. A rekey seals it anew as one with its
// snapshot: no job looks changed meanwhile, and nothing needs the former key afterwards.
func TestRekeyOfAStateWithAJournal(t *testing.T) {
	r := newRekeyed(t)
	r.edit()
	r.check("before")
	entry, err := r.inner.Get(t.Context(), store.JournalKey(0))
	if err != nil || !keyring.IsEncrypted(entry.Data) {
		t.Errorf("an entry is not encrypted: %v", err)
	}
	if err := r.keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.check("with both keys")
	if err := r.stack.ResealState(t.Context(), r.rewriter()); err != nil {
		t.Fatal(err)
	}
	if err := r.keys.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.check("with the new key")
	r.edit()
	r.check("one save later")
}
