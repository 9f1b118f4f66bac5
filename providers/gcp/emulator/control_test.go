package emulator_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// post has something happen through the control API and returns its answer.
func (w *world) post(what string, arguments url.Values) (status int, body string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.emulator.URL()+"/emulator/"+what, strings.NewReader(arguments.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (w *world) must(what string, arguments url.Values) {
	w.t.Helper()
	if status, body := w.post(what, arguments); status != http.StatusOK {
		w.t.Fatalf("%s %v: %d %s", what, arguments, status, body)
	}
}

func TestControl(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.create("a", spot())
	w.create("b", spot())
	w.must("advance", url.Values{"by": {"1m"}})
	w.want("a", tpuapi.Node_READY)

	w.must("kill", url.Values{"name": {"a"}, "worker": {"2"}})
	w.must("maintain", url.Values{"name": {"b"}})
	w.must("preempt", url.Values{"name": {"a"}, "silent": {"true"}})
	w.want("a", tpuapi.Node_PREEMPTED)
	w.must("preempt", url.Values{"name": {"b"}, "zone": {zone}, "kind": {"node"}})
	w.want("b", tpuapi.Node_READY)
	w.clock.Advance(cloud.NoticeTime)
	w.want("b", tpuapi.Node_PREEMPTED)

	w.must("stockout", url.Values{"zone": {zone}, "for": {"10m"}})
	op := w.create("c", spot())
	w.clock.Advance(time.Minute)
	w.failed(op, codes.ResourceExhausted, "There is no more capacity")
	w.must("outage", url.Values{"zone": {zone}})
	_, err := w.tpu.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: parent})
	wantCode(t, err, codes.Unavailable, "")
	w.must("calm", nil)
	w.made("c", spot())
}

func TestControlRejections(t *testing.T) {
	tests := []struct {
		name, what string
		arguments  url.Values
		want       string
	}{
		{"no such node", "preempt", url.Values{"name": {"z"}}, `no group is named "z"`},
		{"one name in two zones", "preempt", url.Values{"name": {"both"}}, `2 groups are named "both"`},
		{"no such host", "kill", url.Values{"name": {"a"}, "worker": {"4"}}, "it has 4"},
		{"no host", "kill", url.Values{"name": {"a"}}, "want the number of a host"},
		{"no such zone", "stockout", url.Values{"zone": {"z"}}, `there is no zone "z"`},
		{"no time", "outage", url.Values{"zone": {zone}, "for": {"soon"}}, `duration "soon"`},
		{"backwards", "advance", url.Values{"by": {"-1m"}}, "less than nothing"},
		{"dead already", "preempt", url.Values{"name": {"dead"}}, "it is PREEMPTED"},
	}
	w := newWorld(t, cloud.Scenario{})
	for _, id := range []string{"a", "both", "dead"} {
		w.made(id, spot())
	}
	_, err := w.tpu.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{
		Parent: "projects/" + project + "/locations/us-central1-a", NodeId: "both", Node: spot(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.preempt("dead", false)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if status, body := w.post(test.what, test.arguments); status != http.StatusBadRequest || !strings.Contains(body, test.want) {
				t.Errorf("got %d %q, want 400 with %q", status, body, test.want)
			}
		})
	}
}

func TestWorldAsJSON(t *testing.T) {
	w := newWorld(t, in(nil))
	w.made("a", spot())
	w.enqueue("q", queued("b"))
	w.clock.Advance(time.Minute)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.emulator.URL()+"/emulator/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got emulator.World
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Groups) != 1 || got.Groups[0].Name != "a" || len(got.Groups[0].Hosts) != 4 || !got.Groups[0].Hosts[3].On {
		t.Errorf("the groups are %+v, want a with 4 hosts on", got.Groups)
	}
	if len(got.Queued) != 1 || got.Queued[0].State != cloud.RequestWaiting {
		t.Errorf("queued are %+v, want q that waits", got.Queued)
	}
	if len(got.Capacity) != 1 || got.Capacity[0] != (cloud.Capacity{Zone: zone, Type: "v5litepod", Total: 16, Used: 16}) {
		t.Errorf("the capacity is %+v, want 16 of 16 taken", got.Capacity)
	}
}
