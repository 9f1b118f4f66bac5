package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/durable"
)

// directory keeps each bucket in a directory of its own: bucket.json, and for
// each version GENERATION.json and its bytes in GENERATION.data. The former is
// written last and removed first, so that bytes alone are leftovers.
type directory string

var _ keeper = directory("")

const (
	recordEnding  = ".json"
	dataEnding    = ".data"
	temporaryMark = "."
	bucketRecord  = "bucket.json"
)

func (d directory) load() ([]Bucket, []version, error) {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return nil, nil, err
	}
	folders, err := os.ReadDir(string(d))
	if err != nil {
		return nil, nil, err
	}
	var buckets []Bucket
	var versions []version
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		b, found, err := d.loadBucket(folder.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process ended before the bucket was there
		}
		if err != nil {
			return nil, nil, err
		}
		buckets, versions = append(buckets, b), append(versions, found...)
	}
	return buckets, versions, nil
}

func (d directory) loadBucket(name string) (b Bucket, versions []version, err error) {
	root := filepath.Join(string(d), name)
	if err := read(filepath.Join(root, bucketRecord), &b); err != nil {
		return b, nil, err
	}
	files, err := os.ReadDir(root)
	if err != nil {
		return b, nil, err
	}
	known := map[string]bool{}
	for _, file := range files {
		generation, isRecord := strings.CutSuffix(file.Name(), recordEnding)
		if !isRecord || file.Name() == bucketRecord || strings.HasPrefix(file.Name(), temporaryMark) {
			continue
		}
		var v version
		if err := read(filepath.Join(root, file.Name()), &v); err != nil {
			return b, nil, err
		}
		known[generation] = true
		versions = append(versions, v)
	}
	for _, file := range files { // what a process left that ended in between
		generation, isData := strings.CutSuffix(file.Name(), dataEnding)
		if isData && !known[generation] || strings.HasPrefix(file.Name(), temporaryMark) {
			err = errors.Join(err, os.Remove(filepath.Join(root, file.Name())))
		}
	}
	return b, versions, err
}

func (d directory) bucket(b Bucket) error {
	if err := os.MkdirAll(filepath.Join(string(d), b.Name), 0o755); err != nil {
		return err
	}
	return d.record(filepath.Join(string(d), b.Name, bucketRecord), b)
}

func (d directory) dropBucket(name string) error { return os.RemoveAll(filepath.Join(string(d), name)) }

func (d directory) path(v version, ending string) string {
	return filepath.Join(string(d), v.Bucket, strconv.FormatInt(v.Generation, 10)+ending)
}

func (d directory) put(v version, data []byte) error {
	if err := durable.WriteFile(d.path(v, dataEnding), data, 0o600); err != nil {
		return err
	}
	return d.mark(v)
}

func (d directory) mark(v version) error { return d.record(d.path(v, recordEnding), v) }

func (d directory) drop(v version) error {
	return errors.Join(os.Remove(d.path(v, recordEnding)), os.Remove(d.path(v, dataEnding)))
}

func (d directory) open(v version) (io.ReadSeekCloser, error) { return os.Open(d.path(v, dataEnding)) }

func (d directory) record(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, data, 0o600)
}

func read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
