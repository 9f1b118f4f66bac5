package main

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

	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// location says where a store is, as agents are told it and people write it:
// a directory, or "gs://BUCKET/PREFIX", with "?kms_key=…" where the service is
// to encrypt with a key of its own.
type location string

// locationOf is the location of a backend.
func locationOf(b schema.Backend) (location, error) {
	if b.Kind != schema.BackendGCS {
		return location(b.Path), nil
	}
	query := url.Values{}
	if b.KMSKey != "" {
		query.Set("kms_key", b.KMSKey)
	}
	u := url.URL{Scheme: "gs", Host: b.Bucket, Path: "/" + b.Prefix, RawQuery: query.Encode()}
	if b.Bucket == "" {
		return "", errors.New("the state is to be in a bucket and none is named; set bucket in state \"gcs\"")
	}
	return location(strings.TrimSuffix(u.String(), "/")), nil
}

// String is the location without options, for people.
func (l location) String() string {
	place, _, _ := strings.Cut(string(l), "?")
	return place
}

// emulatorInterval is the time between two writes of one object of an emulated
// bucket, which takes them at any rate.
const emulatorInterval = 50 * time.Millisecond

// inBucket reports whether the location is a bucket.
func (l location) inBucket() bool { return strings.HasPrefix(string(l), "gs://") }

// bucket is the configuration of a location in a bucket.
func (l location) bucket() (gcp.BucketConfig, error) {
	u, err := url.Parse(string(l))
	if err != nil {
		return gcp.BucketConfig{}, fmt.Errorf("read location: %w", err)
	}
	c := gcp.BucketConfig{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
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

// open opens the store, which must be there.
func (l location) open(ctx context.Context) (store.Store, error) {
	if !l.inBucket() {
		return store.OpenDir(string(l))
	}
	c, err := l.bucket()
	if err != nil {
		return nil, err
	}
	return gcp.OpenBucket(ctx, c)
}

// create is open, but makes a directory that is not there. Buckets are made by
// those who pay for them.
func (l location) create(ctx context.Context) (store.Store, error) {
	if l.inBucket() {
		return l.open(ctx)
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
