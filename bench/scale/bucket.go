package scale

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// Latencies of the emulated bucket: assumed,
// for small objects.
const (
	readLatency  = 40 * time.Millisecond
	writeLatency = 80 * time.Millisecond
)

const (
	bucketName = "acme"
	prefix     = "bench"
)

// service is an emulated bucket that counts and delays requests.
type service struct {
	next                 http.Handler
	slow                 atomic.Bool
	writes, lists, reads atomic.Int64
}

func newService() (*service, error) {
	next, err := storage.New(storage.Config{Buckets: []storage.Bucket{{Name: bucketName}}})
	return &service{next: next}, err
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	latency := readLatency
	switch {
	case r.Method != http.MethodGet:
		latency = writeLatency
		if r.Method != http.MethodDelete && !r.URL.Query().Has("upload_id") {
			s.writes.Add(1)
		}
	case strings.HasSuffix(r.URL.Path, "/o"):
		s.lists.Add(1)
	default:
		s.reads.Add(1)
	}
	if s.slow.Load() {
		sleep.For(r.Context(), latency)
	}
	s.next.ServeHTTP(w, r)
}

// Counts are the requests of a bucket so far.
type Counts struct{ Writes, Lists, Reads int64 }

// slow has a bucket's process delay requests from then on.
const slow command = "slow"

// Bucket is the process of an emulated bucket. It prints its address, and answers each line of in
// with Counts. It ends with in.
func Bucket(in io.Reader, out io.Writer) error {
	s, err := newService()
	if err != nil {
		return err
	}
	server := httptest.NewServer(s)
	defer server.Close()
	debug.SetGCPercent(gcPercent)
	if _, err := fmt.Fprintln(out, server.URL); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if command(lines.Text()) == slow {
			s.slow.Store(true)
		}
		if err := json.NewEncoder(out).Encode(Counts{s.writes.Load(), s.lists.Load(), s.reads.Load()}); err != nil {
			return err
		}
	}
	return lines.Err()
}

// remote is the bucket as the process of the hosts has it.
type remote struct {
	process *process
	url     string
	client  *http.Client
	shared  atomic.Int64 // reads that were answered by another one's, see leases
}

// connections are those of all hosts to the bucket: they are one process, each host would have its own.
const connections = 512

func (b Bench) startBucket(ctx context.Context) (*remote, error) {
	p, err := started(b.Bucket(ctx))
	if err != nil {
		return nil, err
	}
	address, err := p.out.ReadString('\n')
	if err != nil {
		p.end()
		return nil, fmt.Errorf("the bucket's process: %w", err)
	}
	return &remote{process: p, url: strings.TrimSpace(address), client: &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
	}}}, nil
}

// ask tells the process a command.
func (r *remote) ask(c command) (counts Counts, err error) {
	err = r.process.ask(c, &counts)
	counts.Reads += r.shared.Load()
	return counts, err
}

// put writes an object as a small request does, without a client that costs more than that.
func (r *remote) put(ctx context.Context, key string, data []byte) (store.Generation, error) {
	to := r.url + "/upload/storage/v1/b/" + bucketName + "/o?uploadType=media&name=" + url.QueryEscape(prefix+"/"+key)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("write %s: %s", key, body)
	}
	var made struct {
		Generation store.Generation `json:"generation,string"`
	}
	err = json.Unmarshal(body, &made)
	return made.Generation, err
}

// open opens the bucket of a service.
func open(ctx context.Context, address string, client *http.Client, interval time.Duration) (store.Store, error) {
	return bucket.Open(ctx, bucket.Config{Bucket: bucketName, Prefix: prefix, Endpoint: address + "/storage/v1/", HTTPClient: client, WriteInterval: interval})
}

// shared is the bucket for hosts. All of them read the lease after a takeover, which costs this
// process one read for many, and each reads the report of its relay, which this process knows.
// Each read counts and takes its time.
type shared struct {
	store.Store
	bucket *remote
	report func(key string) (data []byte, known bool) // as a host would write it

	lease   atomic.Pointer[reading] // that was read last; nil: none was
	reading singleflight.Group
}

// reading is the lease as it was read.
type reading struct {
	store.Object
	at time.Time
}

// leaseAge is how old the lease may be that a host reads.
const leaseAge = 50 * time.Millisecond

// Get reads an object.
func (s *shared) Get(ctx context.Context, key string) (store.Object, error) {
	if key == store.LeaseKey {
		return s.readLease(ctx)
	}
	data, known := s.report(key)
	if !known {
		return s.Store.Get(ctx, key)
	}
	s.bucket.shared.Add(1)
	sleep.For(ctx, readLatency)
	return store.Object{Attrs: store.Attrs{Key: key, Generation: 1}, Data: data}, ctx.Err()
}

// readLease reads the lease, or has it as another host has just read it.
func (s *shared) readLease(ctx context.Context) (store.Object, error) {
	if read := s.lease.Load(); read != nil && time.Since(read.at) < leaseAge {
		s.bucket.shared.Add(1)
		sleep.For(ctx, readLatency)
		return read.Object, ctx.Err()
	}
	read, err, others := s.reading.Do("", func() (any, error) {
		read, err := s.Store.Get(context.WithoutCancel(ctx), store.LeaseKey)
		if err == nil {
			s.lease.Store(&reading{read, time.Now()})
		}
		return read, err
	})
	if others {
		s.bucket.shared.Add(1)
	}
	return read.(store.Object), err
}
