package configuration

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
)

// A stack that does not answer delays an evaluation by at most the given patience,
// however long its store would be tried.
func TestDataThatDoesNotCome(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(silent) })
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
	reader := (&StackReader{Here: stack.Site{Dir: t.TempDir(), Workspace: schema.DefaultWorkspace}, patience: 200 * time.Millisecond}).Anew(t.Context())
	_, err := reader.Outputs(eval.StackRef{Bucket: "far-away"})
	if err == nil || !strings.Contains(err.Error(), "it took longer than 200ms") {
		t.Errorf("got %v, want that it took too long", err)
	}
}
