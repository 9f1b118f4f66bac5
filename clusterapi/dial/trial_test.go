package dial

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// TestWhoDoesNotAnswer: that a lease has lapsed is said once its holder has let it,
// whatever the clocks say.
func TestWhoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const valid = 15 * time.Second
	for _, test := range []struct {
		name      string
		ahead     time.Duration // the holder's clock
		unrenewed time.Duration
		want      string // after what went wrong; "": nothing
	}{
		{"it was renewed a moment ago", 0, time.Second, ""},
		{"its clock is behind", -10 * time.Minute, time.Second, "; it renewed its lease last at "},
		{"its clock is ahead, and it is gone", 10 * time.Minute, valid, "; it has not renewed its lease for 15s; start another"},
		{"its clock is behind, and it is gone", -10 * time.Minute, time.Minute, "; it has not renewed its lease for 1m0s; start another"},
	} {
		renewed := time.Now().Add(test.ahead)
		got := describe(errors.New("refused"), store.Lease{User: "ann", RenewedAt: renewed, ExpiresAt: renewed.Add(valid)}, test.unrenewed).Error()
		if _, rest, _ := strings.Cut(got, "refused"); test.want == "" && rest != "" || !strings.HasPrefix(rest, test.want) {
			t.Errorf("%s: got %q, want %q in the end", test.name, got, test.want)
		}
	}
}

// TestAnswers: only the process that has the certificate's key answers.
func TestAnswers(t *testing.T) {
	t.Parallel()
	certificate, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	listening := func(serve bool) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if serve {
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						_, _, _ = ServerCredentials(certificate, func(net.Addr, error) {}).ServerHandshake(conn)
					}()
				}
			}()
		}
		return l.Addr().String()
	}
	gone := listening(false)
	for _, test := range []struct {
		name, address, fingerprint string
		patience                   time.Duration
		want                       string // of why not; "": it answers
	}{
		{"it serves", listening(true), Fingerprint(certificate), time.Minute, ""},
		{"another serves there", listening(true), Fingerprint(other), time.Minute, "it is another process"},
		{"it hangs", gone, Fingerprint(certificate), 100 * time.Millisecond, "ask " + gone + " whether it answers: "},
		{"no fingerprint", gone, "", time.Minute, "certificate fingerprint"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), test.patience)
		err := Answers(ctx, test.address, test.fingerprint)
		cancel()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}
