package roles_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/state/store"
)

// A run whose journals are in a bucket goes on after all processes of its roles have ended: with nothing but the bucket,
// as on other machines.
func TestJournalsInABucket(t *testing.T) {
	wire := buckettest.New(t)
	out := t.TempDir()
	s := newStage(t, document(t, out, map[string]any{"journal": "gs://acme/runs/one"}))
	s.store = func(ctx context.Context, location string) (store.Store, error) {
		u, err := url.Parse(location)
		if err != nil {
			return nil, err
		}
		return bucket.Open(ctx, bucket.Config{
			Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Endpoint: wire.URL + "/storage/v1/", HTTPClient: &http.Client{Transport: wire.Transport()},
			WriteInterval: time.Millisecond,
		})
	}
	s.workers(0)
	stop, _ := s.serve(goRoles()...)
	s.until("an update", func(m *model) bool { return m.step == 2 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, ended := s.serve(goRoles()...)
	s.wait(ended)
	s.check(6)
	if _, err := os.Stat(filepath.Join(out, "journal")); !os.IsNotExist(err) {
		t.Errorf("the directory of the run has journals, too: %v", err)
	}
}
