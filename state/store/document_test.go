package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func anAssignment() state.Assignment {
	train := schema.Address{Kind: schema.KindJob, Name: "train"}
	return state.Assignment{
		Slice: "train-0-abc", Stack: "abcdefghijkl", Epoch: 7, Generation: 3,
		Run: &state.Run{
			Job: train, JobID: "train-1", Attempt: 2, Failures: 1, Digest: "d",
			Spec:  schema.Job{Addr: train, Namespace: "train", Command: []schema.Text{schema.Plain("python"), schema.Plain("train.py")}},
			Peers: []state.Peer{{Slice: "train-0-abc", Address: "10.0.0.1"}}, NumSlices: 1, Coordinator: "10.0.0.1:1234",
		},
		PackedTasks: []state.PackedTask{{Slice: "g-0", Owner: train, CPU: 2}},
	}
}

func aReport() state.HostReport {
	train := schema.Address{Kind: schema.KindJob, Name: "train"}
	return state.HostReport{
		Slice: "train-0-abc", Boot: "b", Seq: 9, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Address: "10.0.0.1", Epoch: 7, Generation: 3,
		Task: &state.TaskReport{Job: train, Attempt: 2, Generation: 3, State: schema.TaskRunning, Started: true},
	}
}

// flips calls decode with 3000 damaged versions of what Encode wrote.
func flips(t *testing.T, encoded []byte, decode func(data []byte) (any, error)) {
	t.Helper()
	want, err := decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 7))
	for i := range 3000 {
		data := bytes.Clone(encoded)
		switch at := r.IntN(len(data)); i % 4 {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1:
			data[at] = byte(r.Uint32())
		case 2:
			data = data[:at]
		default:
			data = append(data[:at], data[min(len(data), at+1+r.IntN(60)):]...)
		}
		got, err := decode(data)
		switch {
		case err == nil && !cmp.Equal(got, want, cmp.Exporter(func(reflect.Type) bool { return true })):
			t.Errorf("%q was read", data)
		case err != nil && !errors.Is(err, store.ErrDamaged):
			t.Errorf("%q: got %v, want ErrDamaged", data, err)
		}
	}
}

func TestNoDamageOfTheMailboxIsHalfLoaded(t *testing.T) {
	t.Run("assignment", func(t *testing.T) {
		data, err := store.Encode(anAssignment())
		if err != nil {
			t.Fatal(err)
		}
		flips(t, data, func(data []byte) (any, error) { return store.DecodeAssignment(data) })
	})
	t.Run("report", func(t *testing.T) {
		data, err := store.Encode(aReport())
		if err != nil {
			t.Fatal(err)
		}
		flips(t, data, func(data []byte) (any, error) { return store.DecodeReport(data) })
	})
	t.Run("lease", func(t *testing.T) {
		data, err := store.EncodeIndented(store.Lease{Holder: "ab", Epoch: 3, Host: "h", PID: 7, Nonce: "n", ExpiresAt: time.Unix(1e9, 0).UTC()})
		if err != nil {
			t.Fatal(err)
		}
		s := storetest.NewMemory()
		flips(t, data, func(data []byte) (any, error) {
			if _, err := s.Put(t.Context(), store.LeaseKey, data, store.Any); err != nil {
				t.Fatal(err)
			}
			return store.ReadLease(t.Context(), s)
		})
	})
}

// What an older fray wrote has no checksum; what a newer one wrote may have
// members that mean something for what runs.
func TestDecodeOfOtherVersions(t *testing.T) {
	older, err := json.Marshal(anAssignment())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.DecodeAssignment(older); err != nil || got.Generation != 3 || got.Run == nil {
		t.Errorf("an older fray's: got %+v, %v, want it", got, err)
	}
	renamed := bytes.Replace(older, []byte(`"attempt"`), []byte(`"attempu"`), 1)
	if got, err := store.DecodeAssignment(renamed); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("an older fray's, with a renamed member: got %+v, %v, want ErrDamaged", got, err)
	}
	later := struct {
		state.Assignment
		Limit int `json:"limit"`
	}{anAssignment(), 1}
	newer, err := store.Encode(later)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.DecodeAssignment(newer); !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a newer fray's: got %+v, %v, want ErrNewer that names the member", got, err)
	}
	report := struct {
		state.HostReport
		Mood string `json:"mood"`
	}{aReport(), "good"}
	if newer, err = store.Encode(report); err != nil {
		t.Fatal(err)
	}
	if got, err := store.DecodeReport(newer); err != nil || got.Seq != 9 {
		t.Errorf("a newer fray's report: got %+v, %v, want it without what is unknown", got, err)
	}
	bare, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.DecodeReport(bare); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a report without a checksum and with a member that is not known: got %+v, %v, want ErrDamaged", got, err)
	}
}
