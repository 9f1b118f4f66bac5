package stack

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Ten thousand damaged encrypted states: each is refused, or is read as it was
// written. None is taken for a state that is not there.
func TestNoDamageOfAnEncryptedStateIsHalfLoaded(t *testing.T) {
	kms := filepath.Join(t.TempDir(), "kms")
	if err := keyring.CreateKeyFile(kms); err != nil {
		t.Fatal(err)
	}
	inner := storetest.NewMemory()
	k := &Keys{inner: inner, cache: filepath.Join(t.TempDir(), "key"), declared: &schema.Encryption{KMSKey: "file://" + kms}}
	if err := k.Provide(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	doc := &state.Document{FormatVersion: state.FormatVersion, Lineage: "0123456789abcdef", Serial: 7, Epoch: 3, Jobs: map[schema.Address]*state.Job{}}
	for i := range 20 {
		addr := schema.Address{Kind: schema.KindJob, Name: fmt.Sprintf("job%d", i)}
		doc.Jobs[addr] = &state.Job{
			ID: addr.Name, Status: schema.JobRunning, Attempt: i,
			Spec: &schema.Job{Addr: addr, Command: []schema.Text{schema.Plain("run")}},
		}
	}
	data, err := state.Encode(*doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.store().Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	whole, err := inner.Get(t.Context(), store.StateKey)
	if err != nil || !keyring.IsEncrypted(whole.Data) {
		t.Fatalf("the state is not encrypted: %v", err)
	}
	loaded, _, err := apply.LoadState(t.Context(), k.store())
	if err != nil {
		t.Fatal(err)
	}
	want, err := state.Encode(*loaded)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(13, 9))
	refused := 0
	const tries = 10_000
	for i := range tries {
		damaged := damageOf(r, bytes.Clone(whole.Data))
		if _, err := inner.Put(t.Context(), store.StateKey, damaged, store.Any); err != nil {
			t.Fatal(err)
		}
		got, generation, err := apply.LoadState(t.Context(), k.store())
		switch {
		case err != nil:
			refused++
		case generation == store.Absent:
			t.Fatalf("damage %d: it counts as no state at all", i)
		default:
			if read, err := state.Encode(*got); err != nil || !bytes.Equal(read, want) {
				t.Fatalf("damage %d was read as another state: %v\n%s\nwant\n%s", i, err, read, want)
			}
		}
		if errors.Is(err, store.ErrNotFound) {
			t.Fatalf("damage %d: %v: it counts as no state at all", i, err)
		}
	}
	if refused < tries*95/100 {
		t.Errorf("%d of %d were refused, want nearly all", refused, tries)
	}
}

// damageOf is a document with a bit flipped, a byte lost or doubled, the end cut off,
// or a piece of zeros.
func damageOf(r *rand.Rand, data []byte) []byte {
	at := r.IntN(len(data))
	switch r.IntN(10) {
	case 0:
		return append(data[:at], data[at+1:]...)
	case 1:
		return append(bytes.Clone(data[:at+1]), data[at:]...)
	case 2:
		return data[:at]
	case 3:
		clear(data[at:min(len(data), at+64)])
	default:
		data[at] ^= 1 << r.IntN(8)
	}
	return data
}
