package costreport

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
	"github.com/fray-ml/fray/terminal"
)

func printed(t *testing.T, s store.Store, change func(*Flags)) string {
	t.Helper()
	flags := &Flags{By: []string{"namespace", "job"}}
	if change != nil {
		change(flags)
	}
	o, err := OptionsOf(flags, time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Print(t.Context(), &terminal.Terminal{Stdout: &out}, s, nil, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The requests to the store are a row of the table and of CSV, and an object of JSON, at list prices.
func TestStoreRequests(t *testing.T) {
	s := storetest.NewMemory()
	data, err := store.EncodeRequests(&state.StoreRequestLog{Days: []state.StoreRequestDay{
		{Day: "2026-10-31", Leader: state.StoreRequests{Writes: 1 << 40}},
		{Day: "2026-11-24", Leader: state.StoreRequests{Writes: 100_000, Lists: 100_000, Reads: 500_000}, Hosts: state.StoreRequests{Writes: 400_000, Reads: 2_000_000, Deletes: 7}},
		{Day: "2026-11-25", Hosts: state.StoreRequests{Writes: 60, Reads: 250}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.RequestsKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*Flags)
		want   []string
	}{
		{"a table", nil, []string{
			"store requests  -              -  $4.00–$7.00        -\n",
			"Store requests: 600060 of class A (500060 writes, 100000 lists) and 2500250 reads of class B",
		}},
		{"by day", func(f *Flags) { f.By = []string{"day"} }, []string{
			"2026-11-24, store requests            -      $4.00–$7.00", "2026-11-25, store requests            -  $0.0004–$0.0007", "total",
		}},
		{"of a day", func(f *Flags) { f.Since = "2026-11-25" }, []string{"store requests  -              -  $0.0004–$0.0007        -\n"}},
		{"csv", func(f *Flags) { f.CSV = true }, []string{
			"goodput_high,store_class_a,store_class_b\n", "store requests,,0,0,0,0,0,4.0004,7.0007,0,0,0,,,600060,2500250\n",
		}},
		{"of a namespace", func(f *Flags) { f.HasNamespace, f.Namespace = true, "lab" }, []string{"Nothing was used from"}},
	} {
		got := printed(t, s, test.change)
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", test.name, want, got)
			}
		}
	}
	var got document
	if err := json.Unmarshal([]byte(printed(t, s, func(f *Flags) { f.JSON = true })), &got); err != nil {
		t.Fatal(err)
	}
	r := got.StoreRequests
	if r == nil || len(r.Days) != 2 || r.Writes != 500_060 || r.Cost != (state.Dollars{Low: 4.0004, High: 7.0007}) || r.Days[0].Hosts.Deletes != 7 {
		t.Errorf("got %+v", r)
	}
}

// List prices: of an hour of a busy host, 700 writes and 4,500 reads.
func TestPriceOfRequests(t *testing.T) {
	if got, want := accounting.RequestCost(state.StoreRequests{Writes: 700, Reads: 4500, Deletes: 99}), (state.Dollars{Low: 0.0053, High: 0.0088}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
