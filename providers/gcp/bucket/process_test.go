package bucket

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/state/store/storetest"
)

// serviceVariable makes the test binary a process that holds the lease of a
// store in the bucket of a service, whose address it is.
const serviceVariable = "FRAY_GCP_TEST_SUSPEND"

func TestMain(m *testing.M) {
	service := os.Getenv(serviceVariable)
	if service == "" {
		os.Exit(m.Run())
	}
	if err := beSuspended(context.Background(), service); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func emulated(service string) Config {
	return Config{
		Bucket: "acme", Prefix: "rl/math", Endpoint: service + "/storage/v1/", HTTPClient: &http.Client{}, WriteInterval: 10 * time.Millisecond,
	}
}

func beSuspended(ctx context.Context, service string) error {
	b, err := Open(ctx, emulated(service))
	if err != nil {
		return err
	}
	return storetest.BeSuspended(ctx, b, os.Stdin, os.Stdout)
}

func TestBucketOfASuspendedHolder(t *testing.T) {
	t.Parallel()
	w := buckettest.New(t)
	b, err := Open(t.Context(), emulated(w.URL))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.WriteInterval(); got != 10*time.Millisecond {
		t.Errorf("write interval: got %v, want what the configuration says", got)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.CommandContext(t.Context(), self)
	holder.Env = append(os.Environ(), serviceVariable+"="+w.URL)
	holder.Stderr = os.Stderr
	storetest.RunSuspended(t, b, holder)
}
