package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/status/selection"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// viewOf is a view of a stack with jobs and what they wait for.
func viewOf(jobs map[string]*state.Job, pending ...plan.Pending) *View {
	doc := &state.Document{Lineage: "abcdefghijklmnop", Jobs: map[schema.Address]*state.Job{}, Slices: map[string]*state.Slice{}}
	v := &View{Doc: doc, plan: &plan.Plan{Next: doc, Pending: pending}, now: noon, place: "/stack", pending: map[schema.Address][]string{}, found: selection.Match(doc, pending, nil)}
	for name, j := range jobs {
		addr := schema.Address{Kind: schema.KindJob, Name: name}
		j.ID, j.Spec = name, &schema.Job{Addr: addr}
		doc.Jobs[addr] = j
	}
	for _, p := range pending {
		v.pending[p.Addr] = p.Reasons
	}
	return v
}

func childOf(parent string, j *state.Job) *state.Job {
	j.Launch = &state.Launch{Parent: parent, ParentAttempt: 1}
	return j
}

func up() *state.Job { return &state.Job{Status: schema.JobRunning, Ready: true} }

// pressed gives keys to a screen, one after the other.
func pressed(s *fullScreen, keys ...string) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k}
		if r := []rune(k); len(r) == 1 {
			msg.Code = r[0]
		} else {
			msg = map[string]tea.KeyPressMsg{
				"tab": {Code: tea.KeyTab}, "esc": {Code: tea.KeyEscape}, "enter": {Code: tea.KeyEnter}, "down": {Code: tea.KeyDown},
				"pgdown": {Code: tea.KeyPgDown}, "end": {Code: tea.KeyEnd}, "up": {Code: tea.KeyUp}, "backspace": {Code: tea.KeyBackspace},
			}[k]
		}
		s.Update(msg)
	}
}

func shows(b *board, width, height int) *fullScreen {
	s := newFullScreen(func() (*board, error) { return b, nil })
	s.Update(tea.WindowSizeMsg{Width: width, Height: height})
	s.Update(s.observeNow())
	return s
}

func firstCells(p pane) []string {
	var out []string
	for _, r := range p.rows {
		out = append(out, r.cells()[0])
	}
	return out
}

func TestJobsByUrgencyBelowTheirParents(t *testing.T) {
	blocked := plan.Pending{Addr: schema.Address{Kind: schema.KindJob, Name: "blocked"}, Reasons: []string{"waits for job.x, which failed"}, Blocked: true}
	stuck := plan.Pending{Addr: schema.Address{Kind: schema.KindJob, Name: "stuck"}, Reasons: []string{"no capacity"}}
	coming := plan.Pending{Addr: schema.Address{Kind: schema.KindJob, Name: "coming"}, Reasons: []string{"its slice is created"}, Underway: true}
	v := viewOf(map[string]*state.Job{
		"a-done":   {Status: schema.JobSucceeded},
		"b-up":     up(),
		"blocked":  {Status: schema.JobPending},
		"stuck":    {Status: schema.JobPending},
		"coming":   {Status: schema.JobPending},
		"parent":   up(),
		"p-broken": childOf("parent", &state.Job{Status: schema.JobFailed}),
		"a-fine":   childOf("parent", up()),
		"deeper":   childOf("a-fine", up()),
		"orphan":   childOf("gone", up()),
	}, blocked, stuck, coming)
	want := []string{
		"job.blocked", "job.parent", "  job.p-broken", "  job.a-fine", "    job.deeper",
		"job.stuck", "job.coming", "job.b-up", "job.orphan", "job.a-done",
	}
	if got := firstCells(v.jobPane()); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	v.only = []schema.Address{{Kind: schema.KindJob, Name: "a-fine"}, {Kind: schema.KindJob, Name: "deeper"}}
	if got, want := firstCells(v.jobPane()), []string{"job.a-fine", "  job.deeper"}; !slices.Equal(got, want) {
		t.Errorf("of two: got %q, want %q", got, want)
	}
}

func TestHeadOfTheScreen(t *testing.T) {
	lease := store.Lease{Command: "fray watch", Epoch: 7, PID: 12, Host: "h"}
	for _, test := range []struct {
		name   string
		change func(v *View)
		line   int
		want   string
	}{
		{"no leader", func(*View) {}, 1, "no controller watches"},
		{"a leader", func(v *View) { v.led, v.lease = true, lease }, 1, "fray watch leads, epoch 7 (pid 12 on h)"},
		{"paused", func(v *View) {
			v.led, v.lease = true, lease
			v.Doc.Paused = &state.Pause{At: noon, By: "ada", Reason: "why not"}
		}, 1, "PAUSED by ada since " + noon.Local().Format(time.DateTime) + ": why not | fray watch leads, epoch 7 (pid 12 on h)"},
		{"another workspace", func(v *View) { v.workspace = "trial" }, 0, noon.Local().Format(time.TimeOnly) + "  /stack, workspace trial"},
		{"nothing", func(*View) {}, 2, "no jobs | 0 slices up"},
		{"much", func(v *View) {
			v.Doc.Jobs = viewOf(map[string]*state.Job{"a": up(), "b": up(), "c": {Status: schema.JobFailed}}).Doc.Jobs
			v.Doc.Slices = map[string]*state.Slice{
				"s": {Spec: schema.SliceSpec{TPU: "v5litepod-16"}, UpAt: noon},
				"g": {Spec: schema.SliceSpec{CPU: 1, On: "s"}, UpAt: noon},
				"n": {Spec: schema.SliceSpec{TPU: "v5litepod-16"}},
			}
			v.cost = accelerators.Price{Low: 12, High: 12}
		}, 2, "2 running, 1 failed | 1 slice up, 1 coming, 16 chips | $12.00 an hour"},
		{"drift", func(v *View) {
			v.plan.Drift = []plan.Drift{{Found: "slice x is gone", Then: "will be created again"}, {}}
		}, 3, "slice x is gone; will be created again (and 1 more)"},
		{"a blocked change", func(v *View) { v.plan.Blocked = []plan.BlockedChange{{Detail: "it is protected"}} }, 3, "Blocked: it is protected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf(nil)
			test.change(v)
			got := v.headLines()[test.line].text
			if !strings.HasSuffix(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// Whatever the size and the content, the screen has exactly its rows, and none
// is wider.
func TestScreenFits(t *testing.T) {
	jobs := map[string]*state.Job{}
	for i := range 40 {
		jobs[fmt.Sprintf("a-very-long-name-of-a-job-that-has-to-be-cut-%d", i)] = &state.Job{
			Status: schema.JobPending, Reason: "ein Grund\nwith 漢字漢字漢字, \x1b[31mred\x1b[0m and much more than fits into any line of a terminal",
		}
	}
	v := viewOf(jobs)
	v.Doc.Slices["s"] = &state.Slice{Spec: schema.SliceSpec{Name: "s", Zone: "z", Hosts: 1}, Failed: schema.ErrorCapacity, Error: "stockout\x1b[2J"}
	v.events = []state.Event{{At: noon, Kind: state.EventConfig, Text: "revision 1"}}
	for _, size := range [][2]int{{80, 24}, {1, 1}, {20, 3}, {30, 7}, {40, 10}, {200, 60}, {10, 100}, {0, 0}} {
		for _, keys := range [][]string{nil, {"?"}, {"/", "x"}, {"tab"}, {"end"}} {
			s := shows(newBoard(v), size[0], size[1])
			pressed(s, keys...)
			got := s.draw()
			lines := strings.Split(got, "\n")
			if len(lines) != max(1, size[1]) {
				t.Errorf("%v after %q: %d lines, want %d", size, keys, len(lines), size[1])
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > size[0] {
					t.Errorf("%v after %q: a line is %d wide: %q", size, keys, w, l)
				}
			}
			if strings.ContainsRune(got, '\x1b') {
				t.Errorf("%v after %q: a program's escape sequence reached the screen", size, keys)
			}
		}
	}
}

func TestScreenKeys(t *testing.T) {
	jobs := map[string]*state.Job{}
	for i := range 100 {
		jobs[fmt.Sprintf("n%02d", i)] = up()
	}
	v := viewOf(jobs)
	v.Doc.Slices["s"] = &state.Slice{Spec: schema.SliceSpec{Name: "s", Zone: "west"}}
	for _, test := range []struct {
		name string
		keys []string
		want []string
		not  string
	}{
		{"at first", nil, []string{"▶ Jobs 1-14 of 100", "› job.n00", "  job.n13", "SLICE"}, "job.n14"},
		{"down", []string{"down", "j"}, []string{"Jobs 1-14 of 100", "› job.n02", "  job.n00"}, "› job.n00"},
		{"not above the first", []string{"up", "k"}, []string{"Jobs 1-14", "› job.n00"}, "job.n14"},
		{"a page", []string{"pgdown"}, []string{"Jobs 15-28", "› job.n14"}, "job.n13"},
		{"below what is in sight", strings.Fields(strings.Repeat("down ", 14)), []string{"Jobs 2-15", "› job.n14"}, "job.n00"},
		{"to the end", []string{"end"}, []string{"Jobs 87-100", "› job.n99"}, "job.n85"},
		{"beyond the end and back", []string{"G", "pgdown", "g"}, []string{"Jobs 1-14"}, "job.n14"},
		{"the next pane", []string{"tab"}, []string{"▶ Slices 1 ", "─ Jobs", "SLICE", "› west: 1 slice", "ADDRESS"}, "▶ Jobs"},
		{"around", []string{"tab", "tab"}, []string{"▶ Jobs"}, "▶ Slices"},
		{"filter", []string{"/", "N", "4", "2", "enter"}, []string{"▶ Jobs 1 ", "job.n42", `only "N42"`}, "job.n41"},
		{"filter, corrected", []string{"/", "n", "4", "x", "backspace", "enter"}, []string{"Jobs 10 "}, "job.n50"},
		{"filter, dropped", []string{"/", "n", "4", "esc"}, []string{"1-14 of 100"}, "only"},
		{"filter, dropped later", []string{"/", "4", "enter", "esc"}, []string{"1-14 of 100"}, "only"},
		{"keys of a filter are text", []string{"/", "q"}, []string{"/q"}, "job.n00"},
		{"help", []string{"?"}, []string{"previous pane"}, "job.n00"},
		{"help, and back", []string{"?", "?"}, []string{"job.n00"}, "previous pane"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := shows(newBoard(v), 80, 24)
			pressed(s, test.keys...)
			got := s.draw()
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q on the screen:\n%s", want, got)
				}
			}
			if strings.Contains(got, test.not) && test.not != "" {
				t.Errorf("%q is on the screen:\n%s", test.not, got)
			}
		})
	}
}

// An observation that fails leaves what was seen last, and is reported; if the first
// one fails, the view ends.
func TestScreenWhenAnObservationFails(t *testing.T) {
	s := shows(newBoard(viewOf(map[string]*state.Job{"a": up()})), 80, 24)
	s.Update(observation{err: errors.New("the bucket is away")})
	if got := s.draw(); !strings.Contains(got, "job.a") || !strings.Contains(got, "not up to date: the bucket is away") {
		t.Errorf("got\n%s", got)
	}
	s.Update(s.observeNow())
	if got := s.draw(); strings.Contains(got, "the bucket is away") {
		t.Errorf("after an observation that succeeded:\n%s", got)
	}
	s = newFullScreen(func() (*board, error) { return nil, errors.New("the bucket is away") })
	_, next := s.Update(s.observeNow())
	if s.fatal == nil || next == nil {
		t.Fatalf("the first observation failed: error %v, command %v; want both", s.fatal, next)
	}
	if _, quits := next().(tea.QuitMsg); !quits {
		t.Error("the view goes on after a first observation that failed")
	}
}

// Of ten thousand jobs only those in sight are made into text.
func TestScreenDrawsOnlyWhatIsVisible(t *testing.T) {
	made := 0
	b := &board{}
	b.panes[paneJobs] = pane{name: "Jobs", columns: []column{{"ADDRESS", 40}, {"NOTE", 0}}}
	for i := range 10000 {
		b.panes[paneJobs].rows = append(b.panes[paneJobs].rows, row{cells: func() []string {
			made++
			return []string{fmt.Sprint("job.n", i), ""}
		}})
	}
	s := shows(b, 80, 24)
	pressed(s, "end")
	made = 0
	if got := s.draw(); !strings.Contains(got, "job.n9999") || made > 24 {
		t.Errorf("%d rows were made for 24 lines:\n%s", made, got)
	}
}

func TestColours(t *testing.T) {
	v := viewOf(map[string]*state.Job{"a": {Status: schema.JobFailed}})
	s := shows(newBoard(v), 80, 24)
	if got := s.draw(); strings.Contains(got, "\x1b") {
		t.Errorf("without colours: %q", got)
	}
	s.color = true
	if got := s.draw(); !strings.Contains(got, "\x1b[7;31m› job.a") {
		t.Errorf("a job that failed is not red: %q", got)
	}
}

// What changes all the time and says nothing makes no new document.
func TestUnhurried(t *testing.T) {
	wait := plan.Pending{Addr: schema.Address{Kind: schema.KindJob, Name: "a"}, Reasons: []string{"stockout; next try in 5s"}}
	v := viewOf(map[string]*state.Job{"a": {Status: schema.JobPending}}, wait)
	v.led, v.lease = true, store.Lease{Epoch: 3, RenewedAt: noon, ExpiresAt: noon.Add(time.Second), Nonce: "x"}
	got := v.unhurried()
	if got.Pending[0].Reasons[0] != "stockout" || got.Jobs[0].Reasons[0] != "stockout" {
		t.Errorf("countdowns count: %v, %v", got.Pending, got.Jobs[0].Reasons)
	}
	if !got.Lease.RenewedAt.IsZero() || !got.Lease.ExpiresAt.IsZero() || got.Lease.Nonce != "" || got.Lease.Epoch != 3 {
		t.Errorf("the lease is %+v", got.Lease)
	}
	if v.plan.Pending[0].Reasons[0] != "stockout; next try in 5s" || v.lease.Nonce != "x" {
		t.Error("the view itself was changed")
	}
}
