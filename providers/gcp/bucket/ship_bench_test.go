package bucket

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/state/store"
)

// distant is a service that takes a while for every request, and longer the
// more a connection has to carry.
type distant struct {
	http.RoundTripper
	latency time.Duration
	rate    int // bytes per second of one connection; 0: any
}

func (d distant) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && d.rate > 0 {
		r = r.Clone(r.Context())
		r.Body = &slow{r.Body, d.rate}
	}
	time.Sleep(d.latency)
	resp, err := d.RoundTripper.RoundTrip(r)
	if err == nil && d.rate > 0 {
		resp.Body = &slow{resp.Body, d.rate}
	}
	return resp, err
}

// slow is content that comes at a rate.
type slow struct {
	io.ReadCloser
	rate int
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.rate))
	return n, err
}

// The baseline is one stream from the packer into one upload, and back. What
// is packed is measured before, as a plan does.
func BenchmarkBundleAgainstOneStream(b *testing.B) {
	p := largeProject(b, 16, 4<<20)
	for _, far := range []struct {
		name string
		distant
	}{
		{"latency=200ms", distant{latency: 200 * time.Millisecond}},
		{"latency=50ms,rate=8MBps", distant{latency: 50 * time.Millisecond, rate: 8e6}},
	} {
		b.Run(far.name, func(b *testing.B) {
			var stream, ship, again, read, fetch time.Duration
			for b.Loop() {
				one, many := distantBucket(b, far.distant), distantBucket(b, far.distant)
				stream += timed(b, func(ctx context.Context) error { return uploadStream(ctx, one, p) })
				ship += timed(b, func(ctx context.Context) error { return bundle.Shipper{Store: many}.Ship(ctx, p) })
				again += timed(b, func(ctx context.Context) error { return bundle.Shipper{Store: many}.Ship(ctx, p) })
				read += timed(b, func(ctx context.Context) error { return unpackStream(ctx, one, p, b.TempDir()) })
				f := bundle.Fetcher{Store: many, Keep: filepath.Join(b.TempDir(), "keep")}
				fetch += timed(b, func(ctx context.Context) error { return f.Fetch(ctx, p.Bundle.Sum, b.TempDir()) })
			}
			b.ReportMetric(ship.Seconds()/stream.Seconds(), "x-stream")
			b.ReportMetric(again.Seconds()/stream.Seconds(), "x-stream-again")
			b.ReportMetric(fetch.Seconds()/read.Seconds(), "x-stream-fetch")
		})
	}
}

func distantBucket(b *testing.B, far distant) *Bucket {
	b.Helper()
	cfg := configOf(buckettest.New(b))
	far.RoundTripper = cfg.HTTPClient.Transport
	cfg.HTTPClient.Transport = far
	bucket, err := open(b.Context(), cfg, brisk())
	if err != nil {
		b.Fatal(err)
	}
	return bucket
}

func timed(b *testing.B, do func(context.Context) error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := do(b.Context()); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func uploadStream(ctx context.Context, s store.Store, p bundle.Project) error {
	r, w := io.Pipe()
	go func() {
		_, _, err := bundle.Pack(p.Dir, w)
		w.CloseWithError(err)
	}()
	err := s.Upload(ctx, store.BundleKey(p.Bundle.Sum), r)
	r.CloseWithError(err)
	return err
}

func unpackStream(ctx context.Context, s store.Store, p bundle.Project, to string) error {
	r, err := s.Open(ctx, store.BundleKey(p.Bundle.Sum))
	if err != nil {
		return err
	}
	defer r.Close()
	return bundle.Unpack(r, p.Bundle.Sum, to)
}
