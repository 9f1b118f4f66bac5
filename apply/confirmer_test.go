package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// directReads is a provider of which only direct reads are asked.
type directReads struct {
	providers.Provider
	mu    sync.Mutex
	reads []string
	says  func(name string) (found bool, err error)
}

func (r *directReads) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads = append(r.reads, spec.Name)
	found, err := r.says(spec.Name)
	return schema.SliceStatus{Spec: spec, Phase: schema.SliceReady}, found, err
}

// take is what was read since the last time.
func (r *directReads) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	reads := r.reads
	r.reads = nil
	return reads
}

// doubter is a confirmer on a clock of its own.
type doubter struct {
	*confirmer
	t        *testing.T
	provider *directReads
	at       time.Time
	list     int
}

func newDoubter(t *testing.T) *doubter {
	d := &doubter{t: t, provider: &directReads{says: func(string) (bool, error) { return true, nil }}, at: time.Unix(1_700_000_000, 0)}
	d.confirmer = &confirmer{provider: d.provider, now: func() time.Time { return d.at }}
	return d
}

// look is one look after a plan that doubted some slices, and what it reports of them.
func (d *doubter) look(kind plan.DoubtKind, names ...string) map[string]plan.Confirmation {
	d.t.Helper()
	var doubts []plan.Doubt
	for _, name := range names {
		doubts = append(doubts, plan.Doubt{Slice: schema.SliceSpec{Name: name}, Kind: kind})
	}
	return d.lookAt(doubts)
}

func (d *doubter) lookAt(doubts []plan.Doubt) map[string]plan.Confirmation {
	d.t.Helper()
	d.list++
	d.want(doubts, d.list, d.at)
	d.begin(d.t.Context())
	d.await(d.t.Context(), newPatience(0))
	known := map[string]plan.Confirmation{}
	d.report(known, d.list)
	return known
}

// A slice in doubt is read as soon as its kind of doubt has it, and again at its pace.
func TestDoubtsAreReadAtTheirPace(t *testing.T) {
	for kind, want := range map[plan.DoubtKind][]int{
		plan.DoubtAbsent: {0, 10, 20, 30, 40, 50, 60}, plan.DoubtDead: {0, 10, 20, 30, 40, 50, 60}, plan.DoubtUnlisted: {0, 10, 20, 30, 40, 50, 60},
		plan.DoubtComing: {0, 30, 60}, plan.DoubtSilent: {0, 30, 60}, plan.DoubtGoing: {20, 50},
	} {
		t.Run(string(kind), func(t *testing.T) {
			d := newDoubter(t)
			var got []int
			for second := range 61 {
				known := d.look(kind, "a")
				if len(d.provider.take()) > 0 {
					got = append(got, second)
				}
				if answered := known["a"].Answer == snapshot.AnswerFound; answered != (second >= want[0]) {
					t.Fatalf("after %d s the answer is %q", second, known["a"].Answer)
				}
				d.at = d.at.Add(time.Second)
			}
			if !slices.Equal(got, want) {
				t.Errorf("it was read after %v seconds, want %v", got, want)
			}
		})
	}
}

// A slice that is doubted for another reason is read at once, and what is to wait for
// that, such as the end of a deletion, goes by no answer from before.
func TestDoubtForAnotherReasonIsReadAnew(t *testing.T) {
	d := newDoubter(t)
	d.look(plan.DoubtDead, "a")
	d.at = d.at.Add(time.Second)
	if got := d.look(plan.DoubtGoing, "a")["a"].Answer; got != snapshot.AnswerNone {
		t.Errorf("once it is going the answer of before stands: %q", got)
	}
	d.provider.take()
	d.provider.says = func(string) (bool, error) { return false, nil }
	d.at = d.at.Add(time.Second)
	known := d.look(plan.DoubtAbsent, "a")["a"]
	if known.Answer != snapshot.AnswerGone || len(d.provider.take()) != 1 {
		t.Errorf("once it is absent the answer is %q, want it read at once", known.Answer)
	}
	if !known.Since.Equal(d.at) || known.Lists != 1 || !known.ReadAt.Equal(d.at) {
		t.Errorf("since %s in %d lists, want since %s, which the deletion that went before does not count for", known.Since, known.Lists, d.at)
	}
	since := d.at
	d.at = d.at.Add(time.Second)
	if known := d.look(plan.DoubtDead, "a")["a"]; !known.Since.Equal(since) || known.Lists != 2 {
		t.Errorf("since %s in %d lists, want since %s in 2: both speak against it", known.Since, known.Lists, since)
	}
	if known := d.look(plan.DoubtAbsent); len(known) > 0 {
		t.Errorf("of what is not doubted any more is known %v", known)
	}
}

// An answer does not outlive a read that fails after it.
func TestFailedReadTakesTheAnswerBack(t *testing.T) {
	d := newDoubter(t)
	d.look(plan.DoubtAbsent, "a")
	d.provider.says = func(string) (bool, error) { return false, errors.New("503") }
	d.at = d.at.Add(10 * time.Second)
	if got := d.look(plan.DoubtAbsent, "a")["a"].Answer; got != snapshot.AnswerNone {
		t.Errorf("the answer is %q", got)
	}
}

// Where the provider takes no more reads, no more are made in that look, and those
// slices come first against which something is said.
func TestReadsEndWhereTheProviderTakesNoMore(t *testing.T) {
	d := newDoubter(t)
	left := 0
	d.provider.says = func(string) (bool, error) {
		if left == 0 {
			return false, &providers.Error{Kind: schema.ErrorRate, Op: "read slice", Err: errors.New("its turn has not come")}
		}
		left--
		return true, nil
	}
	var doubts []plan.Doubt
	for i := range 200 {
		kind := plan.DoubtComing
		if i%2 == 1 {
			kind = plan.DoubtAbsent
		}
		doubts = append(doubts, plan.Doubt{Slice: schema.SliceSpec{Name: fmt.Sprintf("s%03d", i)}, Kind: kind})
	}
	for look := range 4 {
		left = 50
		known := d.lookAt(doubts)
		if asked := len(d.provider.take()); asked > 50+readsAtOnce {
			t.Fatalf("look %d asked %d times", look, asked)
		}
		against, beside := 0, 0
		for i, doubt := range doubts {
			if known[doubt.Slice.Name].Answer == snapshot.AnswerFound {
				against, beside = against+i%2, beside+1-i%2
			}
		}
		// Concurrent readers may be a few slices apart.
		if want := min(100, 50*(look+1)); against < want-readsAtOnce || against+beside != 50*(look+1) {
			t.Fatalf("after look %d %d are read of those against which something is said, and %d others", look, against, beside)
		}
		d.at = d.at.Add(time.Second)
	}
}
