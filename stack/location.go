package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Location is where a store is, as it is passed to agents and written by users:
// a directory, or "gs://BUCKET/PREFIX", with "?kms_key=…" where the service is
// to encrypt with a key of its own.
type Location string

// locationOf is the location of a backend.
func locationOf(b schema.Backend) (Location, error) {
	if b.Kind != schema.BackendGCS {
		return Location(b.Path), nil
	}
	query := url.Values{}
	if b.KMSKey != "" {
		query.Set("kms_key", b.KMSKey)
	}
	u := url.URL{Scheme: "gs", Host: b.Bucket, Path: "/" + b.Prefix, RawQuery: query.Encode()}
	if b.Bucket == "" {
		return "", errors.New("the state is to be in a bucket and none is named; set bucket in state \"gcs\"")
	}
	return Location(strings.TrimSuffix(u.String(), "/")), nil
}

// String is the location without options, for people.
func (l Location) String() string {
	place, _, _ := strings.Cut(string(l), "?")
	return place
}

// emulatorInterval is the time between two writes of one object of an emulated
// bucket, which takes them at any rate.
const emulatorInterval = 50 * time.Millisecond

// InBucket reports whether the location is a bucket.
func (l Location) InBucket() bool { return strings.HasPrefix(string(l), "gs://") }

// Bucket is the configuration of a location in a bucket.
func (l Location) Bucket() (bucket.Config, error) {
	u, err := url.Parse(string(l))
	if err != nil {
		return bucket.Config{}, fmt.Errorf("read location: %w", err)
	}
	c := bucket.Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if c.Endpoint, c.HTTPClient, err = emulated(); err != nil {
		return c, err
	}
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" { // the service's limit of one write a second is not its
		c.WriteInterval = emulatorInterval
	}
	for name, values := range u.Query() {
		switch name {
		case "kms_key":
			c.KMSKey = values[0]
		default:
			return c, fmt.Errorf("read location %s: there is no option %q; the only one is kms_key", string(l), name)
		}
	}
	return c, nil
}

// Open opens the store, which must be there.
func (l Location) Open(ctx context.Context) (store.Store, error) {
	if !l.InBucket() {
		return store.OpenDir(string(l))
	}
	c, err := l.Bucket()
	if err != nil {
		return nil, err
	}
	return bucket.Open(ctx, c)
}

// create is open, but creates a directory that does not exist. Buckets are created by
// the users who pay for them.
func (l Location) create(ctx context.Context) (store.Store, error) {
	if l.InBucket() {
		return l.Open(ctx)
	}
	d, err := store.CreateDir(string(l))
	if err != nil {
		return nil, err
	}
	return d, makeIgnored(string(l))
}

// makeIgnored makes a directory that version control passes over: the state
// holds no secrets in clear, but it is nothing for a repository.
func makeIgnored(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ignore := filepath.Join(dir, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", ignore, err)
		}
	}
	return nil
}
