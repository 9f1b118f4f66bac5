package telemetry

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// varied is a stack of n namespaces, reservations, zones and types, each with a job on a slice of
// two hosts, some with hostile names.
func varied(n int) *web.Snapshot {
	doc := &state.Document{
		Lineage: "abcdefghijklmnop", Jobs: map[schema.Address]*state.Job{}, Slices: map[string]*state.Slice{}, Resources: map[schema.Address]state.Resource{},
		Former: state.Former{Metering: &state.Metering{At: time.Now(), Month: time.Now().UTC().Format("2006-01"), Spent: map[string]state.MonthSpend{}}},
	}
	wanted := &schema.Desired{}
	hostile := []string{"a\"} 1\nfray_up 1", "\xff\xfe", strings.Repeat("é", 900), "other", "x\x00y", "", "\x1b[31m"}
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		zone := "zone-" + name
		if i < len(hostile) {
			zone = hostile[i]
			name = hostile[i] + name
		}
		space := schema.Address{Kind: schema.KindNamespace, Name: name}
		wanted.Namespaces = append(wanted.Namespaces, schema.Namespace{Addr: space, Weight: 1, Cost: schema.CostBudget{MaxPerMonth: 10}})
		doc.Metering.Spent[space.Scoped()] = state.MonthSpend{Used: state.Dollars{Low: 1, High: 2}}
		r := schema.Reservation{Addr: schema.Address{Kind: schema.KindReservation, Name: name}, Provider: schema.ProviderGCP, Max: schema.Capacity{CPU: 1, Slices: 1}}
		wanted.Reservations = append(wanted.Reservations, r)
		doc.Resources[r.Addr] = state.Resource{Reservation: &r}
		addr := schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(i)}
		s := &state.Slice{UpAt: time.Now(), PendingSince: time.Now(), Spec: schema.SliceSpec{Name: "s" + strconv.Itoa(i), Owner: addr, Provider: schema.ProviderGCP, Zone: zone, CPU: float64(i) / 7, Hosts: 2}}
		doc.Slices[s.Spec.Name] = s
		doc.Jobs[addr] = &state.Job{
			ID: "id" + strconv.Itoa(i), Status: schema.JobRunning, Slices: []string{s.Spec.Name},
			Spec: &schema.Job{Addr: addr, Namespace: space.Scoped(), User: "user" + strconv.Itoa(i), Resources: schema.Resources{Provider: schema.ProviderGCP, CPU: 1, Slices: 1}},
		}
	}
	return &web.Snapshot{View: access.View{Doc: doc, Plan: &plan.Plan{Next: doc}, Wanted: wanted, At: time.Now(), Lease: store.Lease{Epoch: 1}}, Leads: true}
}

// sumOf adds the series of one name.
func sumOf(t *testing.T, series map[string]string, name string) (sum float64, n int) {
	t.Helper()
	for key, value := range series {
		if strings.HasPrefix(key, name+"{") {
			line := key + " " + value // a label may have spaces
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			sum, n = sum+v, n+1
		}
	}
	return sum, n
}

// The number of series has a bound, whatever users declare and programs make up, and sums stay whole.
func TestSeriesAreBounded(t *testing.T) {
	source := &snapshots{}
	m := newMetrics(source, "1")
	for _, n := range []int{20, 1000} {
		source.snap = varied(n)
		series := scrape(t, m)
		if len(series) > 2500 {
			t.Errorf("%d series of a stack of %d", len(series), n)
		}
		for name, want := range map[string]struct {
			sum    float64
			series int
		}{
			"fray_jobs":                {float64(n), 1},
			"fray_slices":              {float64(n), min(n, mostPlaces+1)},
			"fray_cost_month_dollars":  {3 * float64(n), 2 * min(n, mostNamespaces+1)},
			"fray_cost_budget_dollars": {10 * float64(n), min(n, mostNamespaces+1)},
			"fray_namespace_chips":     {0, min(n, mostNamespaces+1)},
			"fray_reservation_slices":  {0, 3 * min(n, mostReservations+1)},
		} {
			if sum, got := sumOf(t, series, name); sum != want.sum || got > want.series || got < want.series-3 { // the test reads names with spaces as one
				t.Errorf("%s of %d: got %d series with a sum of %g, want %d and %g", name, n, got, sum, want.series, want.sum)
			}
		}
		for key := range series {
			if !utf8.ValidString(key) || strings.ContainsRune(key, '\x1b') || len(key) > 1000 || strings.HasPrefix(key, "fray_up") {
				t.Errorf("got %q", key)
			}
		}
	}
}

// A value keeps its series while it is there, however large others become.
func TestBoundKeepsItsSeries(t *testing.T) {
	b := bound{most: 2}
	b.choose(map[string]float64{"a": 3, "b": 2, "c": 1})
	b.choose(map[string]float64{"a": 1, "b": 1, "c": 9})
	if !b.has("a") || !b.has("b") || b.has("c") {
		t.Errorf("got %v", b.own)
	}
	b.choose(map[string]float64{"a": 1, "c": 9, "d": 8})
	if !b.has("a") || !b.has("c") || b.has("d") {
		t.Errorf("after b has gone: got %v", b.own)
	}
}

func TestReceiversAreBounded(t *testing.T) {
	m := newMetrics(&snapshots{}, "1")
	for i := range 500 {
		m.notified(fmt.Sprint("n", i), "mail", "sent")
	}
	if sum, n := sumOf(t, scrape(t, m), "fray_notices_total"); sum != 500 || n != mostReceivers+1 {
		t.Errorf("got %d series with a sum of %g", n, sum)
	}
}
