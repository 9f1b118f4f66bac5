package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
	"github.com/fray-ml/fray/terminal"
)

// wrote puts a log into a store: its parts, each with the second of its line, 0 where that
// is not known.
type wrote struct {
	second int64
	text   string
}

func put(t *testing.T, s store.Store, task int, dated bool, parts ...wrote) {
	t.Helper()
	var text string
	var index logtime.Index
	for _, p := range parts {
		index = append(index, logtime.Mark{Offset: int64(len(text)), At: time.Unix(p.second, 0)})
		text += p.text
	}
	if _, err := s.Put(t.Context(), store.LogKey("id", 1, task, 0), []byte(text), store.Any); err != nil {
		t.Fatal(err)
	}
	if !dated {
		return
	}
	if _, err := s.Put(t.Context(), store.LogTimesKey("id", 1, task, 0), index.Bytes(), store.Any); err != nil {
		t.Fatal(err)
	}
}

func printerOf(s store.Store, q Query, tasks int) (*logPrinter, *screen) {
	out := &screen{}
	p := newLogPrinter(&terminal.Terminal{Stdout: out}, s, q)
	for n := range tasks {
		p.stream(logKey{job: schema.Address{Kind: schema.KindJob, Name: "a"}, attempt: 1, task: n}).id = "id"
	}
	p.name(tasks > 1)
	return p, out
}

// The lines of several tasks are in the order in which they were written; those of a task
// whose agent dated nothing keep their own.
func TestLogsAreMergedByTime(t *testing.T) {
	s := storetest.NewMemory()
	put(t, s, 0, true, wrote{1, "a1\n"}, wrote{3, "a3\n"}, wrote{6, "a6 no end"})
	put(t, s, 1, true, wrote{2, "b2\n"}, wrote{4, "b4\n"}, wrote{5, "b"}, wrote{7, "7\n"})
	put(t, s, 2, false, wrote{1, "old\n"}, wrote{1, "older\n"})
	for _, test := range []struct {
		name  string
		query Query
		want  string
	}{
		{"all", Query{Tail: -1}, "2|old 2|older 0|a1 1|b2 0|a3 1|b4 0|a6 no end 1|b7"},
		{"bare", Query{Tail: -1, Bare: true}, "old older a1 b2 a3 b4 a6 no end b7"},
		{"the last line of each", Query{Tail: 1}, "2|older 0|a6 no end 1|b7"},
		{"with times", Query{Tail: 1, Timestamps: true}, "2|- older 0|1970-01-01T00:00:06.000Z a6 no end 1|1970-01-01T00:00:07.000Z b7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, out := printerOf(s, test.query, 3)
			if err := p.drain(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer("job.a/", "", " | ", "|", "-                        ", "- ", "\n", " ").Replace(out.String())
			if strings.TrimSpace(got) != test.want {
				t.Errorf("it prints %q, want %q", got, test.want)
			}
		})
	}
}

// --since leaves out lines of the same part that are known to be older.
func TestLogsSince(t *testing.T) {
	s := storetest.NewMemory()
	now := time.Now().Unix()
	put(t, s, 0, true, wrote{now - 1000, "long ago\n"}, wrote{now - 10, "lately\n"})
	p, out := printerOf(s, Query{Tail: -1, Since: 5 * time.Minute}, 1)
	if err := p.drain(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "lately\n" {
		t.Errorf("it prints %q", got)
	}
}

// A line that is followed waits a moment for lines of other tasks, which were written
// before it and come later.
func TestFollowedLogsAreMerged(t *testing.T) {
	p, out := printerOf(storetest.NewMemory(), Query{Tail: -1, Follow: true}, 2)
	all := p.sorted()
	at := func(second int64, text string) store.LogPart {
		return store.LogPart{Data: []byte(text), Times: logtime.Index{{At: time.Unix(second, 0)}}}
	}
	p.heard(all[1], at(2, "second\n"))
	p.release(false)
	p.heard(all[0], at(1, "first\nth"))
	p.heard(all[1], at(9, "last\n"))
	if got := out.String(); got != "" {
		t.Fatalf("it prints %q at once", got)
	}
	all[1].lines[0].arrived = time.Now().Add(-time.Minute) // it has waited
	p.release(false)
	want := "job.a/0 | first\njob.a/1 | second\n"
	if got := out.String(); got != want {
		t.Fatalf("it prints %q, want %q", got, want)
	}
	p.heard(all[0], at(3, "ird\n"))
	p.flush()
	if got := out.String(); got != want+"job.a/0 | third\njob.a/1 | last\n" {
		t.Errorf("in the end it prints %q", got)
	}
}

func BenchmarkMerge(b *testing.B) {
	for _, tasks := range []int{1, 16} {
		b.Run(map[int]string{1: "one task", 16: "16 tasks"}[tasks], func(b *testing.B) {
			s := storetest.NewMemory()
			line := []byte(strings.Repeat("x", 99) + "\n")
			chunk := []byte(strings.Repeat(string(line), 2600))
			var index logtime.Index
			for n := range 2600 {
				index = append(index, logtime.Mark{Offset: int64(n * len(line)), At: time.Unix(int64(n), 0)})
			}
			for task := range tasks {
				for key, data := range map[string][]byte{store.LogKey("id", 1, task, 0): chunk, store.LogTimesKey("id", 1, task, 0): index.Bytes()} {
					if _, err := s.Put(b.Context(), key, data, store.Any); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.SetBytes(int64(tasks * len(chunk)))
			for b.Loop() {
				p, out := printerOf(s, Query{Tail: -1}, tasks)
				if err := p.drain(b.Context(), true); err != nil {
					b.Fatal(err)
				}
				if len(out.String()) < tasks*len(chunk) {
					b.Fatal("lines are missing")
				}
			}
		})
	}
}
