package apply_test

import (
	"encoding/json"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// A report that is none leaves its host as it was, and all others seen.
func TestDamagedReportBlindsToNobodyElse(t *testing.T) {
	s := storetest.NewMemory()
	put := func(key string, data []byte) {
		t.Helper()
		if _, err := s.Put(t.Context(), key, data, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	report := func(slice string, seq uint64) []byte {
		data, err := json.Marshal(store.HostReport{Slice: slice, Seq: seq, Address: "10.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	o := &apply.Observer{Store: s}
	put(store.HostKey("a", 0), report("a", 1))
	put(store.HostKey("b", 0), []byte("{\"slice\": \"b"))
	for range 2 {
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil || len(obs.Hosts["a"]) != 1 || len(obs.Hosts["b"]) != 0 {
			t.Fatalf("got hosts %v, %v; want the one of a", obs.Hosts, err)
		}
	}
	put(store.HostKey("b", 0), report("b", 2))
	put(store.HostKey("a", 0), []byte("nonsense"))
	obs, err := o.Observe(t.Context(), "stack")
	if err != nil || len(obs.Hosts["a"]) != 1 || len(obs.Hosts["b"]) != 1 {
		t.Errorf("got hosts %v, %v; want both, a as it was", obs.Hosts, err)
	}
}
