package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// TestClusterClocks has the clocks of all hosts and of the leading watch be wrong
// by ten minutes, as far as others can see them: in what they write. No host
// counts as silent, nobody takes the lease of who renews it, and who is dead is
// replaced.
func TestClusterClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			bucket := emulatorWith(t, false)
			p := newClusterProof(t, bucket, "", 2)
			first := p.watch(t).Process.Pid
			p.awaitLeader(t, 0)
			bucket.skew(fmt.Sprintf(`"pid": %d`, first), skew)
			p.watch(t)
			p.allow(t, "go-child-0")
			p.awaitNote(t, "told", "registered child-0 1")
			epoch := p.lease(t).Epoch
			p.awaitRenewals(t, 6) // two lives of a lease
			if got := p.lease(t); got.PID != first || got.Epoch != epoch {
				t.Errorf("pid %d leads with epoch %d, want %d with %d, which has renewed its lease", got.PID, got.Epoch, first, epoch)
			}
			if off := time.Until(p.lease(t).RenewedAt); (off - skew).Abs() > 5*time.Minute {
				t.Errorf("the lease was renewed %s from now, want about %s: the proof proves nothing", off, skew)
			}
			if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			p.awaitLeader(t, first)
			p.allow(t, "go-child-1")
			p.finish(t, nil)
		})
	}
}

// skew shifts the times of host reports, and of leases that have a text in
// them; those come from another machine.
func (e *emulator) skew(mine string, by time.Duration) {
	declared := regexp.MustCompile(`("crc32c":")[^"]*"`)
	boot := regexp.MustCompile(`("boot_id": "[^"]*)[^"]{9}"`)
	between := func(_ http.ResponseWriter, r *http.Request) bool {
		lease := isPut(r, store.LeaseKey)
		if !lease && !isUnder(r, store.HostsPrefix) {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && (!lease || bytes.Contains(body, []byte(mine))) {
			body = shifted(boot.ReplaceAll(body, []byte(`${1}elsewhere"`)), by)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(uploaded(r), crc32.MakeTable(crc32.Castagnoli)))
		body = declared.ReplaceAll(body, []byte("${1}"+base64.StdEncoding.EncodeToString(sum)+`"`))
		r.Body = io.NopCloser(bytes.NewReader(body))
		return false
	}
	e.between.Store(&between)
}

// shifted adds to all times in a text, which stays as long as it was.
func shifted(text []byte, by time.Duration) []byte {
	const layout = "2006-01-02T15:04:05"
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	return times.ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse(layout, string(found))
		if err != nil {
			return found
		}
		return []byte(at.Add(by).Format(layout))
	})
}

// lease is the one in the store.
func (p *clusterProof) lease(t *testing.T) store.Lease {
	t.Helper()
	st, err := p.store(t)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.ReadLease(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// awaitRenewals waits until the lease was written some more times.
func (p *clusterProof) awaitRenewals(t *testing.T, n int) {
	t.Helper()
	last, seen := p.lease(t).Nonce, 0
	if err := within(proofPatience, func() error {
		if now := p.lease(t).Nonce; now != last {
			last = now
			seen++
		}
		if seen < n {
			return fmt.Errorf("the lease was renewed %d times", seen)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
