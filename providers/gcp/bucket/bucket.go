package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/state/store"
)

// Config configures OpenBucket.
type Config struct {
	Bucket string // the name alone
	Prefix string // "rl/math": where the stack's objects are; "": at the top of the bucket
	// KMSKey encrypts what is written, "projects/P/locations/L/keyRings/R/cryptoKeys/K";
	// "": as the bucket states.
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

func (c Config) validate() error {
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

// Bucket is a Store in a Cloud Storage bucket.
//
// An object's generation is the service's own. Every write is an upload with a
// precondition, also that of [store.Any], which is conditional on the
// generation that this Bucket has seen last; so a request that was given up
// and arrives late can change nothing.
//
// Every object has in its metadata which write made it. A write that fails in
// a way that leaves open whether it happened is tried again, and when then the
// precondition does not hold, that mark shows whether it was this write itself
// that won.
type Bucket struct {
	service   *storage.Service
	cfg       Config // Prefix is "" or ends in a slash
	tempo     client.Pace
	pacers    pacers
	requests  *requests
	divisions divisions // of lists
}

var (
	_ store.Store       = (*Bucket)(nil)
	_ store.Conditional = (*Bucket)(nil)
	_ store.Billed      = (*Bucket)(nil)
)

// Open opens the store in a bucket that must be there and readable.
func Open(ctx context.Context, cfg Config) (*Bucket, error) {
	t := client.ServicePace()
	t.Interval = cmp.Or(cfg.WriteInterval, t.Interval)
	return open(ctx, cfg, t)
}

func open(ctx context.Context, cfg Config, t client.Pace) (*Bucket, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	if cfg.Prefix = strings.Trim(cfg.Prefix, "/"); cfg.Prefix != "" {
		cfg.Prefix += "/"
	}
	transport, err := newTransport(context.WithoutCancel(ctx), cfg) // it also fetches tokens later
	counted := &requests{next: transport}
	var service *storage.Service
	if err == nil {
		service, err = newService(ctx, cfg, t, counted)
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket gs://%s: %w", cfg.Bucket, err)
	}
	b := &Bucket{service: service, cfg: cfg, tempo: t, pacers: pacers{interval: t.Interval}, requests: counted, divisions: divisions{page: int(pageSize)}}
	if err := b.check(ctx); err != nil {
		return nil, fmt.Errorf("open bucket: %w", b.fail(opList, "", err))
	}
	return b, nil
}

// newService makes a client of the JSON API, whose requests are tried once: what may be tried
// again, and what an error leaves open, is decided here.
//
// It is what Google's storage library calls the API with. That library itself costs each
// process of fray milliseconds before main begins, for protocols that are not used here.
func newService(ctx context.Context, cfg Config, t client.Pace, transport http.RoundTripper) (*storage.Service, error) {
	options := []option.ClientOption{
		option.WithoutAuthentication(), // that is the transport's
		option.WithHTTPClient(client.New(transport, t.Stall)),
	}
	if endpoint := cmp.Or(cfg.Endpoint, emulatorEndpoint()); endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint))
	}
	service, err := storage.NewService(context.WithoutCancel(ctx), options...)
	if err != nil {
		return nil, fmt.Errorf("make storage client: %w", err)
	}
	return service, nil
}

// emulatorEndpoint is where STORAGE_EMULATOR_HOST leads, "" where it is not set.
func emulatorEndpoint() string {
	host := os.Getenv("STORAGE_EMULATOR_HOST")
	if host == "" {
		return ""
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return strings.TrimSuffix(host, "/") + "/storage/v1/"
}

func newTransport(ctx context.Context, cfg Config) (http.RoundTripper, error) {
	if cfg.HTTPClient != nil {
		return cmp.Or(cfg.HTTPClient.Transport, http.DefaultTransport), nil
	}
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		return http.DefaultTransport, nil
	}
	return client.Authorized(ctx, client.API{Name: "storage", Path: "storage/v1/", Scope: storage.DevstorageReadWriteScope}, cfg.Endpoint)
}

// WriteInterval is the time between two writes of one object, one second unless
// the configuration states otherwise. Earlier writes wait.
func (b *Bucket) WriteInterval() time.Duration { return b.tempo.Interval }

// Location is "gs://bucket/prefix".
func (b *Bucket) Location() string { return strings.TrimSuffix(b.url(""), "/") }

// url names an object for people.
func (b *Bucket) url(key string) string { return "gs://" + b.cfg.Bucket + "/" + b.cfg.Prefix + key }

// maxName is the longest name of an object that the service takes, in bytes.
const maxName = 1024

// object returns the name of the object of a key that is fit to be one.
func (b *Bucket) object(key string) (string, error) {
	if err := store.CheckKey(key); err != nil {
		return "", err
	}
	name := b.cfg.Prefix + key
	if len(name) > maxName {
		return "", fmt.Errorf("the object's name is longer than %d bytes; choose a shorter prefix", maxName)
	}
	return name, nil
}
