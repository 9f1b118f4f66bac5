package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/host"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// EndpointVariable names one address that stands in for every service of Google
// Cloud: that of an emulator.
const EndpointVariable = "FRAY_GCP_ENDPOINT"

// gcpOf is the provider block of Google Cloud, nil where nothing is there and
// nothing is declared. What is declared comes first: the state has what was.
func gcpOf(declared []schema.Provider, doc *state.Document) *schema.Provider {
	if doc != nil && len(declared) == 0 {
		declared = doc.Desired.Providers
	}
	for i := range declared {
		if declared[i].Name == schema.ProviderGCP {
			return &declared[i]
		}
	}
	if doc == nil || !hasCloudSlices(doc) {
		return nil
	}
	for i := range doc.Desired.Providers {
		if doc.Desired.Providers[i].Name == schema.ProviderGCP {
			return &doc.Desired.Providers[i]
		}
	}
	return nil
}

func hasCloudSlices(doc *state.Document) bool {
	for _, s := range doc.Slices {
		if s.Spec.Provider == schema.ProviderGCP {
			return true
		}
	}
	return false
}

// google is the provider of Google Cloud, nil where it is not needed.
func (s *Stack) google(ctx context.Context, declared []schema.Provider, doc *state.Document) (providers.Provider, error) {
	block := gcpOf(declared, doc)
	if block == nil {
		return nil, nil
	}
	if err := s.sameProject(block, doc); err != nil {
		return nil, err
	}
	if !s.At.InBucket() {
		return nil, errNoBucket
	}
	bucket, err := s.At.Bucket()
	if err != nil {
		return nil, err
	}
	return gcp.New(ctx, gcp.Config{
		Project: block.Project, Bucket: bucket.Bucket,
		Endpoint: os.Getenv(EndpointVariable), Bootstrap: s.Bootstrap(ctx),
	})
}

var errNoBucket = errors.New("hosts on Google Cloud meet the controller in the stack's bucket: add state \"gcs\" { bucket = \"…\" } to the fray block, or run the file here with --local")

// sameProject rejects another project while there are slices in the one before:
// they would be searched in the wrong place.
func (s *Stack) sameProject(block *schema.Provider, doc *state.Document) error {
	if doc == nil || !hasCloudSlices(doc) {
		return nil
	}
	was := gcpOf(doc.Desired.Providers, doc)
	if was == nil || was.Project == block.Project || was.Project == "" {
		return nil
	}
	return fmt.Errorf("the stack has slices in project %s, and the provider block names %s: set it back and run fray destroy first", was.Project, block.Project)
}

// HostBootstrap ships fray's own program when the first machine needs it.
type HostBootstrap struct {
	ctx   context.Context
	stack *Stack

	Report release.UploadReporter // of the upload; nil: it is not reported

	mu  sync.Mutex
	sum string
}

var _ gcp.Bootstrapper = (*HostBootstrap)(nil)

// Bootstrap is what the stack's machines start with. It is one for all providers of
// a process, so that the program is searched once.
func (s *Stack) Bootstrap(ctx context.Context) *HostBootstrap {
	if s.hosts == nil {
		s.hosts = &HostBootstrap{ctx: context.WithoutCancel(ctx), stack: s}
	}
	return s.hosts
}

// Metadata implements gcp.Bootstrapper.
func (h *HostBootstrap) Metadata(spec schema.SliceSpec) (map[string]string, error) {
	sum, err := h.Ship()
	if err != nil {
		return nil, err
	}
	return host.Bootstrap{
		Store: string(h.stack.At), AgentSHA256: sum, AgentVersion: release.Version(), Workspace: h.stack.Named(),
	}.Metadata(spec)
}

// Ship brings the program to where hosts find it; what failed is tried again.
func (h *HostBootstrap) Ship() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sum != "" {
		return h.sum, nil
	}
	sum, err := release.AgentBinary(h.ctx, h.stack.Store, h.Report)
	if err == nil {
		h.sum = sum
	}
	return sum, err
}

// Emulated reports whether an emulator stands in for Google Cloud.
func Emulated() bool { return os.Getenv(EndpointVariable) != "" }

// emulated is the client of a bucket that an emulator serves, nil for the real one.
func emulated() (endpoint string, client *http.Client, err error) {
	at := os.Getenv(EndpointVariable)
	if !Emulated() || os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		return "", nil, nil
	}
	if u, err := url.Parse(at); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", nil, fmt.Errorf("%s=%s is not the address of an emulator: write it as fray emulate gcp prints it, such as http://127.0.0.1:8470", EndpointVariable, at)
	}
	return at + "/storage/v1/", http.DefaultClient, nil
}
