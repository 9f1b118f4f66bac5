package loop

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// recordings opens recorded configurations by their names.
type recordings struct {
	opened  []string
	desired map[string]schema.Desired
	broken  error
}

func (s *recordings) open(_ context.Context, name string) (func(*state.Document) (*schema.Desired, error), error) {
	s.opened = append(s.opened, name)
	if s.broken != nil {
		return nil, s.broken
	}
	found, ok := s.desired[name]
	if !ok {
		return nil, errors.New("there is no " + name)
	}
	return func(*state.Document) (*schema.Desired, error) { return &found, nil }, nil
}

func wantingSpace(name string) schema.Desired {
	return schema.Desired{Namespaces: []schema.Namespace{{Addr: schema.Address{Kind: schema.KindNamespace, Name: name}}}}
}

// TestRecordedValuesAreFollowed: the values of the configuration that was accepted
// last, which is opened once for each, and no values once none is recorded.
func TestRecordedValuesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		s := &recordings{desired: map[string]schema.Desired{"one": wantingSpace("one"), "two": wantingSpace("two")}}
		l.cfg.Recorded = s.open
		for _, test := range []struct{ name, want string }{{"one", "one"}, {"two", "two"}, {"two", "two"}, {"", "zero"}} {
			next := apply.Accept(l.stepper.Document(), apply.Request{Desired: wantingSpace("zero"), Recorded: test.name})
			if err := l.stepper.Accept(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				l.followRecorded(t.Context())
				if _, err := l.stepper.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := l.stepper.Document().Desired.Namespaces[0].Addr.Name; got != test.want {
				t.Errorf("recorded as %q: namespace %s is desired, want %s", test.name, got, test.want)
			}
		}
		if got := strings.Join(s.opened, " "); got != "one two two" {
			t.Errorf("opened %q, want each once when it was accepted", got)
		}
	})
}

// TestValuesStayWhileTheyCannotBeFollowed: the loop goes on, logs the reason once, and
// tries again with a backoff.
func TestValuesStayWhileTheyCannotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &recordings{desired: map[string]schema.Desired{"one": wantingSpace("one")}, broken: errors.New("the store is away")}
		cfg := &Config{Recorded: s.open, Log: slog.New(slog.NewTextHandler(&log, nil))}
		follows := &recording{ctx: t.Context(), cfg: cfg, name: "one"}
		try := func() *schema.Desired {
			t.Helper()
			desired, err := follows.Refine(&state.Document{})
			if err != nil {
				t.Fatalf("the loop was held up: %v", err)
			}
			return desired
		}
		for range 1000 {
			if try() != nil {
				t.Fatal("a recording that cannot be opened has a configuration")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(s.opened); n < 2 || n > 20 {
			t.Errorf("tried %d times in 100 s, want some, not one in each step", n)
		}
		if n := strings.Count(log.String(), "the store is away"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, log.String())
		}
		s.broken = nil
		time.Sleep(time.Hour)
		if got := try(); got == nil || got.Namespaces[0].Addr.Name != "one" {
			t.Errorf("with the store back: %v, want what is recorded", got)
		}
	})
}

// TestFollowedFilesRefineTheirOwn: a recording does not replace followed files.
func TestFollowedFilesRefineTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		l.cfg.Recorded = (&recordings{}).open
		refined := 0
		p := &Proposal{Name: "files", Refine: func(*state.Document) (*schema.Desired, error) {
			refined++
			return nil, nil
		}, Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
			return apply.Accept(doc, apply.Request{Desired: wantingSpace("files")}), nil
		}}
		l.cfg.Proposal = func() *Proposal { return p }
		for range 2 {
			if err := l.followFiles(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.followRecorded(t.Context())
			if _, err := l.stepper.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if refined != 2 {
			t.Errorf("the files' values were refined %d times in 2 steps", refined)
		}
	})
}

// TestAStopKeepsFollowing: a change that leaves the configuration as it was does not
// end the following of its values; another configuration does.
func TestAStopKeepsFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		refined := 0
		p := &Proposal{Name: "files", Refine: func(*state.Document) (*schema.Desired, error) {
			refined++
			return nil, nil
		}, Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
			return apply.Accept(doc, apply.Request{Desired: wantingSpace("files")}), nil
		}}
		l.cfg.Proposal = func() *Proposal { return p }
		step := func() {
			t.Helper()
			if err := l.followFiles(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.followRecorded(t.Context())
			if _, err := l.stepper.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		step()
		for _, test := range []struct {
			name    string
			desired schema.Desired
			want    int
		}{{"a stop", wantingSpace("files"), 2}, {"another configuration", wantingSpace("other"), 2}} {
			if err := change(t, l, func(doc *state.Document, _ time.Time) (*state.Document, error) {
				return apply.Accept(doc, apply.Request{Desired: test.desired, KeepRecorded: true}), nil
			}); err != nil {
				t.Fatal(err)
			}
			if step(); refined != test.want {
				t.Errorf("after %s the files' values were refined %d times, want %d", test.name, refined, test.want)
			}
		}
	})
}
