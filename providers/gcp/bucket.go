package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	htransport "google.golang.org/api/transport/http"

	"github.com/fray-ml/fray/state/store"
)

// BucketConfig configures OpenBucket.
type BucketConfig struct {
	Bucket string // the name alone
	Prefix string // "rl/math": where the stack's objects are; "": at the top of the bucket
	// KMSKey encrypts what is written, "projects/P/locations/L/keyRings/R/cryptoKeys/K";
	// "": as the bucket says.
	KMSKey string
	// Endpoint replaces the service's, "http://127.0.0.1:4443/storage/v1/"; for
	// tests. STORAGE_EMULATOR_HOST does so too, without credentials.
	Endpoint string
	// WriteInterval is the time to leave between two writes of one object; 0:
	// one second, which is what the service asks for. Less is for an emulator.
	WriteInterval time.Duration
	// HTTPClient does its own authentication; nil: application default
	// credentials.
	HTTPClient *http.Client
}

func (c BucketConfig) validate() error {
	switch {
	case c.Bucket == "":
		return errors.New("no bucket is named; set bucket")
	case strings.ContainsAny(c.Bucket, ":/ "):
		return fmt.Errorf("bucket %q is not a name; write it without gs:// and put what follows into prefix", c.Bucket)
	}
	if c.WriteInterval < 0 {
		return fmt.Errorf("write interval %v must not be negative", c.WriteInterval)
	}
	if c.Prefix != "" {
		if err := store.CheckKey(strings.Trim(c.Prefix, "/")); err != nil {
			return fmt.Errorf("prefix: %w", err)
		}
	}
	return nil
}

// tempo is how much at a time, how fast and how long a Bucket tries.
type tempo struct {
	interval time.Duration // between two writes of one object
	stall    time.Duration // a request that moves no byte for this long is given up and tried again
	backoff  time.Duration // before the first retry; doubles up to maxBackoff
	patience time.Duration // an operation that keeps failing for this long fails
	// chunk is how many bytes of a blob are sent, and kept in memory to be sent
	// again, at a time; a multiple of 256 KiB.
	chunk int
}

func serviceTempo() tempo {
	return tempo{
		interval: time.Second, stall: 20 * time.Second, backoff: 250 * time.Millisecond, patience: time.Minute, chunk: 8 << 20,
	}
}

// Bucket is a Store in a Cloud Storage bucket.
//
// An object's generation is the service's own. Every write is an upload with a
// precondition, also that of [store.Any], which is conditional on the
// generation that this Bucket has seen last; so a request that was given up
// and arrives late can change nothing.
//
// Every object says in its metadata which write made it. A write that fails in
// a way that leaves open whether it happened is tried again, and when then the
// precondition does not hold, that mark tells whether it was this write itself
// that won.
type Bucket struct {
	bucket *storage.BucketHandle
	cfg    BucketConfig // Prefix is "" or ends in a slash
	tempo  tempo
	lanes  lanes
}

var _ store.Store = (*Bucket)(nil)

// OpenBucket opens the store in a bucket that must be there and readable.
func OpenBucket(ctx context.Context, cfg BucketConfig) (*Bucket, error) {
	t := serviceTempo()
	t.interval = cmp.Or(cfg.WriteInterval, t.interval)
	return openBucket(ctx, cfg, t)
}

func openBucket(ctx context.Context, cfg BucketConfig, t tempo) (*Bucket, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	if cfg.Prefix = strings.Trim(cfg.Prefix, "/"); cfg.Prefix != "" {
		cfg.Prefix += "/"
	}
	client, err := newClient(ctx, cfg, t)
	if err != nil {
		return nil, fmt.Errorf("open bucket gs://%s: %w", cfg.Bucket, err)
	}
	b := &Bucket{bucket: client.Bucket(cfg.Bucket), cfg: cfg, tempo: t, lanes: lanes{interval: t.interval}}
	if err := b.check(ctx); err != nil {
		return nil, fmt.Errorf("open bucket: %w", b.fail(opList, "", err))
	}
	return b, nil
}

// newClient makes a client whose requests are tried once: what may be tried
// again, and what an error leaves open, is decided here.
func newClient(ctx context.Context, cfg BucketConfig, t tempo) (*storage.Client, error) {
	ctx = context.WithoutCancel(ctx) // it also fetches tokens later
	transport, err := newTransport(ctx, cfg)
	if err != nil {
		return nil, err
	}
	options := []option.ClientOption{
		storage.WithJSONReads(),
		option.WithoutAuthentication(), // that is the transport's
		option.WithHTTPClient(&http.Client{Transport: &stallTransport{base: transport, limit: t.stall}}),
	}
	if cfg.Endpoint != "" {
		options = append(options, option.WithEndpoint(cfg.Endpoint))
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("make storage client: %w", err)
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return client, nil
}

func newTransport(ctx context.Context, cfg BucketConfig) (http.RoundTripper, error) {
	if cfg.HTTPClient != nil {
		return cmp.Or(cfg.HTTPClient.Transport, http.DefaultTransport), nil
	}
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		return http.DefaultTransport, nil
	}
	return authorized(ctx, api{name: "storage", path: "storage/v1/", scope: storage.ScopeReadWrite}, cfg.Endpoint)
}

// api is one of Google's services.
type api struct{ name, path, scope string }

// authorized is a transport that adds application default credentials.
// endpoint replaces the service's; "": its own.
func authorized(ctx context.Context, a api, endpoint string) (http.RoundTripper, error) {
	options := []option.ClientOption{
		option.WithScopes(a.scope),
		internaloption.EnableNewAuthLibrary(),
		internaloption.WithDefaultEndpointTemplate("https://" + a.name + ".UNIVERSE_DOMAIN/" + a.path),
		internaloption.WithDefaultMTLSEndpoint("https://" + a.name + ".mtls.googleapis.com/" + a.path),
		internaloption.WithDefaultUniverseDomain("googleapis.com"),
	}
	if endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint))
	}
	client, _, err := htransport.NewClient(ctx, options...)
	if err != nil {
		return nil, credentialsError(err)
	}
	return client.Transport, nil
}

// WriteInterval is the time between two writes of one object, one second unless
// the configuration says otherwise. Earlier writes wait.
func (b *Bucket) WriteInterval() time.Duration { return b.tempo.interval }

// Location is "gs://bucket/prefix".
func (b *Bucket) Location() string { return strings.TrimSuffix(b.url(""), "/") }

// url names an object for people.
func (b *Bucket) url(key string) string { return "gs://" + b.cfg.Bucket + "/" + b.cfg.Prefix + key }

// maxName is the longest name of an object that the service takes, in bytes.
const maxName = 1024

// object returns the handle of a key that is fit to be one.
func (b *Bucket) object(key string) (*storage.ObjectHandle, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, err
	}
	name := b.cfg.Prefix + key
	if len(name) > maxName {
		return nil, fmt.Errorf("the object's name is longer than %d bytes; choose a shorter prefix", maxName)
	}
	return b.bucket.Object(name), nil
}
