package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// metadataHostVariable replaces the metadata server, "HOST:PORT"; Google's own
// libraries read it too.
const metadataHostVariable = "GCE_METADATA_HOST"

// metadataServer answers what a machine of Google Cloud may know of itself
// (cloud.google.com/compute/docs/metadata). The client in
// cloud.google.com/go/compute/metadata sleeps through the end of a context
// when it waits for changes; here they are what matters.
type metadataServer struct {
	base   string // "http://HOST/computeMetadata/v1/"
	client *http.Client
}

func newMetadataServer() metadataServer {
	host := os.Getenv(metadataHostVariable)
	if host == "" {
		host = "169.254.169.254"
	}
	// Never through a proxy: it would answer for its own machine.
	return metadataServer{base: "http://" + host + "/computeMetadata/v1/", client: &http.Client{Transport: &http.Transport{}}}
}

// entry is one value of the metadata server.
type entry struct {
	value string
	etag  string // changes whenever the value does
}

// errNotDefined reports that the machine has no such value.
var errNotDefined = errors.New("the metadata server does not know it")

// metadataPatience bounds a request that waits for nothing.
const metadataPatience = 10 * time.Second

// get returns a value.
func (m metadataServer) get(ctx context.Context, path string) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataPatience)
	defer cancel()
	return m.do(ctx, http.MethodGet, path, "")
}

// changeWait is after how long the server answers although nothing has changed.
const changeWait = 2 * time.Minute

// change returns a value once it is not that of the etag any more, or after
// changeWait.
func (m metadataServer) change(ctx context.Context, path, etag string) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, changeWait+metadataPatience)
	defer cancel()
	query := url.Values{
		"wait_for_change": {"true"}, "last_etag": {etag}, "timeout_sec": {fmt.Sprint(int(changeWait.Seconds()))},
	}
	return m.do(ctx, http.MethodGet, path+"?"+query.Encode(), "")
}

// put writes a guest attribute.
func (m metadataServer) put(ctx context.Context, path, value string) error {
	ctx, cancel := context.WithTimeout(ctx, metadataPatience)
	defer cancel()
	_, err := m.do(ctx, http.MethodPut, path, value)
	return err
}

func (m metadataServer) do(ctx context.Context, method, path, content string) (entry, error) {
	request, err := http.NewRequestWithContext(ctx, method, m.base+path, strings.NewReader(content))
	if err != nil {
		return entry{}, fmt.Errorf("ask the metadata server: %w", err)
	}
	request.Header.Set("Metadata-Flavor", "Google")
	reply, err := m.client.Do(request)
	if err != nil {
		return entry{}, fmt.Errorf("ask the metadata server: %w", err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, 1<<20))
	name, _, _ := strings.Cut(path, "?")
	switch {
	case err != nil:
		return entry{}, fmt.Errorf("ask the metadata server for %s: %w", name, err)
	case reply.StatusCode == http.StatusNotFound:
		return entry{}, fmt.Errorf("%s: %w", name, errNotDefined)
	case reply.StatusCode != http.StatusOK:
		return entry{}, fmt.Errorf("ask the metadata server for %s: it answers %s", name, reply.Status)
	}
	return entry{value: strings.TrimSpace(string(body)), etag: reply.Header.Get("ETag")}, nil
}
