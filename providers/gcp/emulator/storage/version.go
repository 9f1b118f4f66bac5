package storage

import (
	"bytes"
	"crypto/md5"
	"hash/crc32"
	"io"
	"time"
)

// version is one generation of an object. It is never changed, only replaced.
type version struct {
	Bucket         string            `json:"bucket"`
	Name           string            `json:"name"`
	Generation     int64             `json:"generation"` // microseconds, as the service's are
	Metageneration int64             `json:"metageneration"`
	Size           int64             `json:"size"`
	MD5            []byte            `json:"md5"`
	CRC32C         uint32            `json:"crc32c"`
	Content        content           `json:"content,omitzero"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	KMSKey         string            `json:"kmsKey,omitempty"`
	Components     int               `json:"componentCount,omitempty"` // of a composite object, which shows no MD5
	Created        time.Time         `json:"created"`
	Updated        time.Time         `json:"updated"`
	Deleted        time.Time         `json:"deleted,omitzero"` // zero: it is the live one
}

// content is how an object's bytes are to be read.
type content struct {
	Type         string `json:"contentType,omitempty"`
	Encoding     string `json:"contentEncoding,omitempty"`
	Language     string `json:"contentLanguage,omitempty"`
	Disposition  string `json:"contentDisposition,omitempty"`
	CacheControl string `json:"cacheControl,omitempty"`
}

func (v version) live() bool { return v.Deleted.IsZero() }

// sum fills in what follows from the data.
func (v version) sum(data []byte) version {
	digest := md5.Sum(data)
	v.Size, v.MD5 = int64(len(data)), digest[:]
	v.CRC32C = crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return v
}

// keeper keeps versions and their bytes. It is used by one goroutine at a time;
// what it opens is read by any.
type keeper interface {
	// load returns the buckets and versions that are kept, in no order.
	load() ([]Bucket, []version, error)
	// bucket keeps a bucket's attributes.
	bucket(b Bucket) error
	dropBucket(name string) error
	// put keeps a new version.
	put(v version, data []byte) error
	// mark keeps what has changed of a version, but its bytes.
	mark(v version) error
	drop(v version) error
	open(v version) (io.ReadSeekCloser, error)
}

// memory is a keeper that forgets with its process.
type memory struct{ data map[int64][]byte }

var _ keeper = (*memory)(nil)

func newMemory() *memory { return &memory{data: map[int64][]byte{}} }

func (m *memory) load() ([]Bucket, []version, error) { return nil, nil, nil }
func (m *memory) bucket(Bucket) error                { return nil }
func (m *memory) dropBucket(string) error            { return nil }
func (m *memory) mark(version) error                 { return nil }

func (m *memory) put(v version, data []byte) error {
	m.data[v.Generation] = data
	return nil
}

func (m *memory) drop(v version) error {
	delete(m.data, v.Generation)
	return nil
}

func (m *memory) open(v version) (io.ReadSeekCloser, error) {
	return nopCloser{bytes.NewReader(m.data[v.Generation])}, nil
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }
