package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
)

// A cluster and the Python package's LocalCluster take and refuse the same requests: the table is
// python/tests/test_verdicts.py, whose messages are in verdicts.json.
func TestVerdictsOfRequests(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "python", "tests", "verdicts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table []struct {
		Name    string
		Taken   bool
		Request json.RawMessage
	}
	if err := json.Unmarshal(data, &table); err != nil || len(table) < 50 {
		t.Fatalf("%d requests, %v", len(table), err)
	}
	r := newRig(t, accesstest.LocalStack())
	for _, row := range table {
		t.Run(row.Name, func(t *testing.T) {
			var request clusterapi.JobRequest
			if err := protojson.Unmarshal(row.Request, &request); err != nil {
				t.Fatal(err)
			}
			request.Namespace, request.NameClash = "verdicts", clusterapi.NameClash_NAME_CLASH_RECREATE
			_, err := r.client.Launch(r.user(), &clusterapi.LaunchRequest{Request: &request, RequestId: row.Name})
			if taken := err == nil; taken != row.Taken || !taken && status.Code(err) != codes.InvalidArgument {
				t.Errorf("taken is %t (%v), want %t", taken, err, row.Taken)
			}
		})
	}
}
