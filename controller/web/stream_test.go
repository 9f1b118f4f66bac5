package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// events reads server-sent events of one kind from a real connection.
type events struct {
	t     *testing.T
	lines *bufio.Scanner
	last  string // id
}

func listen(t *testing.T, h http.Handler, path string, header http.Header) *events {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	r.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("got %s, %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	return &events{t: t, lines: bufio.NewScanner(answer.Body)}
}

// next is the data of the next event, which must be of a kind.
func (e *events) next(kind string, into any) {
	e.t.Helper()
	for e.lines.Scan() {
		line := e.lines.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			e.last = id
		}
		if got, ok := strings.CutPrefix(line, "event: "); ok && got != kind {
			e.t.Fatalf("got event %q, want %q", got, kind)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), into); err != nil {
				e.t.Fatal(err)
			}
			return
		}
	}
	e.t.Fatalf("the stream ended before an event %q: %v", kind, e.lines.Err())
}

func TestUpdates(t *testing.T) {
	first := family()
	from := newSource(first)
	past := []state.Event{{At: testTime, Kind: state.EventReady, Addr: schema.Address{Kind: schema.KindJob, Name: "root"}, Text: "attempt 1 is up"}}
	s := pageOf(t, nil, func(c *Config) {
		c.Source, c.Pace = from, time.Millisecond
		c.History = func(context.Context) ([]state.Event, error) { return past, nil }
	})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); s.Run(ctx) }()
	defer func() { cancel(); <-ran }()

	e := listen(t, s, "/api/v1/updates", http.Header{})
	var o Overview
	e.next("update", &o)
	if o.Version != 1 || o.Jobs[schema.JobRunning] != 2 {
		t.Fatalf("got %+v, want version 1 and two jobs that run", o)
	}
	same := *first
	same.At = testTime.Add(time.Second)
	from.put(&same)
	e.next("update", &o)
	if o.Version != 1 || !o.StepAt.Equal(same.At) {
		t.Errorf("got version %d, step at %v; want the same version and a later step", o.Version, o.StepAt)
	}
	other := *first
	other.Doc = first.Doc.Clone()
	other.Doc.Paused = &state.Pause{By: "ada", Reason: "lunch"}
	from.put(&other)
	e.next("update", &o)
	if o.Version != 2 || o.Paused == nil || o.Paused.By != "ada" {
		t.Errorf("got version %d, paused %v; want 2, by ada", o.Version, o.Paused)
	}
	if got := decode[EventList](t, s, "/api/v1/events"); got.Total != 2 || got.Events[0].Text != "paused by ada: lunch" ||
		got.Events[1].Job != "id-root" || got.Events[1].Level != LevelGood {
		t.Errorf("got events %+v, want that it was paused and what was before", got.Events)
	}
}

// running is a job whose attempt 2 has two tasks.
func running() *Snapshot {
	snap := family()
	for _, j := range snap.Doc.Jobs {
		if j.ID == "id-root" {
			j.Attempt = 2
			j.Attempts = []state.Attempt{{Number: 1, Outcome: schema.TaskFailed, Tasks: make([]state.Task, 1)}, {Number: 2, Tasks: make([]state.Task, 2)}}
		}
	}
	return snap
}

func ended(snap *Snapshot) *Snapshot {
	after := *snap
	after.Doc = snap.Doc.Clone()
	for addr, j := range after.Doc.Jobs {
		if j.ID == "id-root" {
			changed := *j
			changed.Attempts = []state.Attempt{j.Attempts[0], {Number: 2, Outcome: schema.TaskSucceeded, Tasks: make([]state.Task, 2)}}
			after.Doc.Jobs[addr] = &changed
		}
	}
	return &after
}

func task(attempt, n int) LogStream { return LogStream{Job: "id-root", Attempt: attempt, Task: n} }

func TestLogsLive(t *testing.T) {
	snap, wrote := running(), &memory{}
	s := pageOf(t, snap, func(c *Config) { c.Logs, c.Now = wrote, time.Now })
	wrote.write(task(2, 0), "first\nsec")
	e := listen(t, s, "/api/v1/jobs/id-root/logs", http.Header{})
	var c LogChunk
	e.next("log", &c)
	if c.Text != "first\n" || c.Task != 0 || c.Next != 6 {
		t.Errorf("got %+v, want the whole line", c)
	}
	wrote.write(task(2, 0), "ond\n")
	e.next("log", &c)
	if c.Text != "second\n" || c.Next != 13 {
		t.Errorf("got %+v, want the second line once it is whole", c)
	}
	wrote.write(task(2, 1), "other\xff\nwithout end")
	e.next("log", &c)
	if c.Text != "other\ufffd\n" || c.Task != 1 {
		t.Errorf("got %+v, want the other task's, in UTF-8", c)
	}
	cursor := e.last
	s.advance(ended(snap))
	e.next("log", &c)
	if c.Text != "without end" {
		t.Errorf("got %+v, want what has no end of line once the attempt has ended", c)
	}
	e.next("end", &struct{}{})

	wrote.write(task(2, 0), "third\n")
	again := listen(t, s, "/api/v1/jobs/id-root/logs", http.Header{"Last-Event-Id": {cursor}})
	again.next("log", &c)
	if c.Text != "third\n" || c.Task != 0 {
		t.Errorf("got %+v, want to go on behind the cursor", c)
	}
	again.next("log", &c)
	if c.Text != "without end" || c.Task != 1 {
		t.Errorf("got %+v, want the rest of the other task", c)
	}
}

func TestLogsOnce(t *testing.T) {
	wrote := &memory{most: 7}
	wrote.write(task(1, 0), strings.Repeat("0123456789\n", 10)+"end")
	s := pageOf(t, running(), func(c *Config) { c.Logs = wrote })
	text := func(a LogAnswer) string {
		all := ""
		for _, c := range a.Logs {
			all += c.Text
		}
		return all
	}
	whole := decode[LogAnswer](t, s, "/api/v1/jobs/id-root/logs?attempt=1")
	if text(whole) != strings.Repeat("0123456789\n", 10)+"end" || !whole.Ended || whole.Logs[0].Cut {
		t.Errorf("got %+v, want all of it", whole)
	}
	tail := decode[LogAnswer](t, s, "/api/v1/jobs/id-root/logs?attempt=1&tail=20")
	if text(tail) != "0123456789\nend" || !tail.Logs[0].Cut {
		t.Errorf("got %+v, want the last whole lines, marked as cut", tail)
	}
	if got := decode[LogAnswer](t, s, "/api/v1/jobs/id-root/logs"); got.Attempt != 2 || got.Ended || len(got.Logs) != 0 {
		t.Errorf("got %+v, want attempt 2, which has written nothing yet", got)
	}
	wrote.err = errors.New("the bucket is away")
	if w := ask(s, "/api/v1/jobs/id-root/logs", nil); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "the bucket is away") {
		t.Errorf("got %d %s, want %d and why", w.Code, w.Body, http.StatusBadGateway)
	}
}

func TestJournal(t *testing.T) {
	snap := running()
	s := pageOf(t, snap, nil)
	s.advance(ended(snap))
	next := ended(snap)
	next.Doc.Slices = map[string]*state.Slice{}
	for name, slice := range map[string]state.Slice{"a": {PendingSince: testTime}, "b": {UpAt: testTime, PendingSince: testTime, Listed: true}, "c": {Terminating: state.Termination{Cause: state.CauseHostLost, Text: "it is silent"}}} {
		slice.Spec.Name = name
		next.Doc.Slices[name] = &slice
	}
	next.Doc.ZoneHealth = map[string]state.ZoneHealth{"us-a": {Kind: schema.ErrorCapacity, Reason: "none left", At: testTime}}
	for addr, j := range next.Doc.Jobs {
		if j.ID == "id-solo" {
			delete(next.Doc.Jobs, addr)
		}
	}
	next.Lease.Epoch, next.Lease.User, next.Lease.Host = 7, "ada", "here"
	s.advance(next)
	var got []string
	for _, e := range decode[EventList](t, s, "/api/v1/events").Events {
		got = append(got, string(e.Level)+" "+e.About+" "+e.Text)
	}
	want := []string{
		"warn us-a capacity: none left", "warn c goes: it is silent", "good b is up", "info a is asked for", "info job.solo is gone",
		"info controller ada@here leads with epoch 7", "good job.root attempt 2 succeeded",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if one := decode[EventList](t, s, "/api/v1/events?limit=1"); one.Total != len(want) || len(one.Events) != 1 {
		t.Errorf("got %d of %d events, want 1 of %d", len(one.Events), one.Total, len(want))
	}
	s.journal = journal{}
	for i := range keptEvents + 5 {
		s.journal.note(&Snapshot{View: access.View{Doc: snap.Doc}}, &Snapshot{View: access.View{Doc: snap.Doc, At: testTime, Lease: leaseOf(uint64(i + 1))}})
	}
	if len(s.journal.events) != keptEvents || s.journal.events[0].Seq == 1 {
		t.Errorf("got %d events, the first %d; want the last %d", len(s.journal.events), s.journal.events[0].Seq, keptEvents)
	}
}
