package stack

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Where the state is encrypted the ledger of usage is, too, and what was written in clear
// before is read all the same.
func TestUsageIsEncryptedAsTheState(t *testing.T) {
	kms := filepath.Join(t.TempDir(), "kms")
	if err := keyring.CreateKeyFile(kms); err != nil {
		t.Fatal(err)
	}
	inner := storetest.NewMemory()
	k := &Keys{inner: inner, cache: filepath.Join(t.TempDir(), "key"), declared: &schema.Encryption{KMSKey: "file://" + kms}}
	if err := k.Provide(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 26, 1, 0, 0, 0, time.UTC)
	put := func(s store.Store, n int) {
		data, err := store.EncodeUsage([]state.UsageInterval{{
			Slice: "a", From: begin.Add(time.Duration(n) * time.Hour), To: begin.Add(time.Duration(n+1) * time.Hour),
			Use: state.UseRunning, UsageOwner: state.UsageOwner{User: "ann", Attempt: n},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.UsageKey("2026-11-26", 1, n), data, store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	put(inner, 0) // before encryption was declared
	put(k.store(), 1)
	raw, err := inner.Get(t.Context(), store.UsageKey("2026-11-26", 1, 1))
	if err != nil || !keyring.IsEncrypted(raw.Data) {
		t.Fatalf("what was used is not encrypted: %v", err)
	}
	all, err := apply.ReadUsage(t.Context(), k.store(), nil, begin, begin.Add(3*time.Hour))
	if err != nil || len(all) != 2 || all[1].User != "ann" {
		t.Errorf("read %+v, %v", all, err)
	}
}
