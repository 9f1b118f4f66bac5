package gcp

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
)

// For any callers: no minute sees more creations than the limit, and callers that come
// back when they were asked to are served in the order of their first calls.
func TestLimiterNeverPassesItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &limiter{perMinute: rapid.IntRange(1, 7).Draw(t, "limit")}
		now := time.Unix(0, 0)
		var served []time.Time
		for i := range rapid.IntRange(1, 200).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond)
			name := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "name"))
			if wait := l.take(name, now); wait == 0 {
				served = append(served, now)
			} else if wait < 0 || wait > time.Hour {
				t.Fatalf("call %d has to wait for %v", i, wait)
			}
			if n := len(served); n > l.perMinute && now.Sub(served[n-1-l.perMinute]) < time.Minute && served[n-1].Equal(now) {
				t.Fatalf("%d were served within %v", l.perMinute+1, now.Sub(served[n-1-l.perMinute]))
			}
		}
	})
}

// A thousand slices that are preempted at once are all asked for in as many
// minutes as the limit makes of them, whether or not the callers come often.
func TestThousandAtOnce(t *testing.T) {
	for name, step := range map[string]time.Duration{"often": time.Second, "seldom": time.Minute, "as told": 0} {
		t.Run(name, func(t *testing.T) {
			l := &limiter{perMinute: 60}
			now := time.Unix(0, 0)
			began := now
			left := make([]string, 0, 1000)
			for i := range 1000 {
				left = append(left, fmt.Sprint(i))
			}
			for len(left) > 0 {
				var waiting []string
				soonest := time.Hour
				for _, each := range left {
					if wait := l.take(each, now); wait > 0 {
						waiting = append(waiting, each)
						soonest = min(soonest, wait)
					}
				}
				if len(waiting) > 0 && len(waiting) < len(left) && waiting[0] < left[0] && len(waiting[0]) == len(left[0]) {
					t.Fatalf("%s was served before %s", left[0], waiting[0])
				}
				left = waiting
				if step > 0 {
					soonest = step
				}
				if len(left) > 0 {
					now = now.Add(soonest)
				}
			}
			if took := now.Sub(began); took != 16*time.Minute {
				t.Errorf("it took %v", took)
			}
			if len(l.queued) != 0 {
				t.Errorf("%d are in the queue", len(l.queued))
			}
		})
	}
}

// A turn is the time at which it is had.
func TestTurnIsKept(t *testing.T) {
	l := &limiter{perMinute: 2}
	now := time.Unix(0, 0)
	for _, want := range []time.Duration{0, 0, time.Minute, time.Minute, 2 * time.Minute} {
		name := fmt.Sprint(rand.Int())
		if got := l.take(name, now); got != want {
			t.Errorf("the wait is %v, want %v", got, want)
		}
		if want == 0 {
			continue
		}
		if got := l.take(name, now.Add(10*time.Second)); got != want-10*time.Second {
			t.Errorf("ten seconds later the wait is %v, want %v", got, want-10*time.Second)
		}
	}
}

// A caller that does not come back does not block others for ever.
func TestForgottenTurns(t *testing.T) {
	l := &limiter{perMinute: 1}
	now := time.Unix(0, 0)
	l.take("first", now)
	for i := range 10 {
		l.take(fmt.Sprint("gone-", i), now)
	}
	if got := l.take("last", now.Add(time.Second)); got != 11*time.Minute-time.Second {
		t.Errorf("the wait is %v", got)
	}
	// By then each of them has let its turn pass.
	now = now.Add(15 * time.Minute)
	if got := l.take("last", now); got != 0 {
		t.Errorf("the wait is %v", got)
	}
}

func TestCreationsWaitForTheirTurn(t *testing.T) {
	s := newTPUService(t)
	now := time.Unix(0, 0)
	p := s.provider(t, func(c *Config) { c.CreatesPerMinute, c.Now = 2, func() time.Time { return now } })
	create := func(name string) error { return p.Create(t.Context(), tpuSpec(name)) }
	for _, name := range []string{"one", "two"} {
		if err := create(name); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(20 * time.Second)
	after := wantKind(t, create("three"), schema.ErrorRate, "waiting for its turn: at most 2 creations a minute")
	if after != 40*time.Second {
		t.Errorf("it is to wait for %v", after)
	}
	// Asking about what was asked for takes no turn.
	if err := create("one"); err != nil {
		t.Error(err)
	}
	now = now.Add(40 * time.Second)
	if err := create("three"); err != nil {
		t.Error(err)
	}
	if got := s.count("CreateNode"); got != 3 {
		t.Errorf("the service was asked %d times", got)
	}
}

// When the service itself reports too many requests, no other caller asks at once.
func TestServiceThatLimits(t *testing.T) {
	s := newTPUService(t)
	now := time.Unix(0, 0)
	p := s.provider(t, func(c *Config) { c.Now = func() time.Time { return now } })
	s.reject = func(method string) error {
		if method == "CreateNode" {
			return status.Error(codes.ResourceExhausted, "Quota exceeded for quota metric 'CreateNode requests' and limit 'CreateNode requests per minute'")
		}
		return nil
	}
	wantKind(t, p.Create(t.Context(), tpuSpec("one")), schema.ErrorRate, "per minute")
	wantKind(t, p.Create(t.Context(), tpuSpec("two")), schema.ErrorRate, "waiting for its turn")
	if got := s.count("CreateNode"); got != 1 {
		t.Errorf("the service was asked %d times", got)
	}
	now = now.Add(time.Minute)
	s.do(func() { s.reject = nil })
	if err := p.Create(t.Context(), tpuSpec("two")); err != nil {
		t.Error(err)
	}
}
