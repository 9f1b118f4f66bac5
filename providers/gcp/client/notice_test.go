package client

import (
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

func TestProblem(t *testing.T) {
	rejected := &url.Error{Op: "Get", URL: "http://bucket", Err: errors.New("connection refused")}
	for _, test := range []struct {
		name  string
		fails time.Duration // until then
		heard bool          // the request has a listener
		told  bool
	}{
		{"brief", 500 * time.Millisecond, true, false},
		{"long", 30 * time.Second, true, true},
		{"long, without a listener", 30 * time.Second, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var after time.Duration
				var said error
				tell := func(err error) {
					if said == nil {
						after, said = time.Since(began), err
					}
				}
				ctx := WithRetryNotice(t.Context(), tell)
				if !test.heard {
					ctx = WithRetryNotice(ctx, nil)
				}
				err := ServicePace().Retry(ctx, func() error {
					if time.Since(began) < test.fails {
						return rejected
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if (said != nil) != test.told {
					t.Fatalf("told: %v, want that something is: %v", said, test.told)
				}
				if test.told && (!errors.Is(said, rejected) || after > noticeAfter) {
					t.Errorf("told after %v: %v, want %v within %v", after, said, rejected, noticeAfter)
				}
			})
		})
	}
}
