package logs

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
)

// flaky is a store whose writes fail now and then, some of them after all.
type flaky struct {
	store.Store
	random *rand.Rand
}

var errFlaky = errors.New("the store has a bad day")

func (f flaky) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	switch f.random.IntN(4) {
	case 0:
		return 0, errFlaky
	case 1:
		if _, err := f.Store.Put(ctx, key, data, want); err != nil {
			return 0, err
		}
		return 0, errFlaky // written, but the writer does not know
	}
	return f.Store.Put(ctx, key, data, want)
}

// Whatever is written, whenever the agent dies and the store fails: what was
// shipped is what was written, nothing twice and nothing missing.
func TestShippedIsWritten(t *testing.T) {
	const id = "a-0123456789ab"
	top, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		dir := filepath.Join(top, strconv.Itoa(runs))
		inner, err := store.CreateDir(filepath.Join(dir, "store"))
		if err != nil {
			rt.Fatal(err)
		}
		s := flaky{inner, rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))}
		path := filepath.Join(dir, "log")
		fresh := func() *Shipper {
			return &Shipper{Store: s, Job: id, Attempt: 2, Task: 1, Path: path, Times: path + ".times"}
		}
		ship := fresh()
		var want []byte
		var marks logtime.Index
		for step := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			part := bytes.Repeat([]byte{byte('a' + len(want)%26)}, rapid.IntRange(0, chunkSize+1000).Draw(rt, "bytes"))
			if len(part) > 0 {
				marks = append(marks, logtime.Mark{Offset: int64(len(want)), At: time.Unix(int64(step+1), 0).UTC()})
			}
			want = append(want, part...)
			if err := os.WriteFile(path+".times", marks.Bytes(), 0o600); err != nil {
				rt.Fatal(err)
			}
			if err := os.WriteFile(path, want, 0o600); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "restart") {
				ship = fresh()
				if err := ship.Resume(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
			if err := ship.Ship(t.Context()); err != nil && !errors.Is(err, errFlaky) {
				rt.Fatal(err)
			}
		}
		for ship.Finish(t.Context()) != nil {
			continue
		}
		checkTimes(rt, inner, store.LogName{Job: id, Attempt: 2, Task: 1}, marks)
		var got []byte
		for {
			data, next, err := tailLogs(t.Context(), inner, id, 2, 1, int64(len(got)))
			if err != nil || next != int64(len(got)+len(data)) {
				rt.Fatalf("tail from %d: %d bytes, next %d, %v", len(got), len(data), next, err)
			}
			if len(data) == 0 {
				break
			}
			got = append(got, data...)
		}
		if !bytes.Equal(got, want) {
			rt.Errorf("shipped %d bytes, want %d", len(got), len(want))
		}
	})
}

// slow is a store that wants its writes apart; it counts them by what they are of.
type slow struct {
	store.Store
	data, times int
}

func (s *slow) WriteInterval() time.Duration { return time.Second }

func (s *slow) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if strings.Contains(key, ".times/") {
		s.times++
	} else {
		s.data++
	}
	return s.Store.Put(ctx, key, data, want)
}

// Where writes cost, few of them are of times; at the end all lines have theirs.
func TestTimesCostFewWrites(t *testing.T) {
	inner, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &slow{Store: inner}
	path := filepath.Join(t.TempDir(), "log")
	ship := &Shipper{Store: s, Job: "a", Attempt: 1, Path: path, Times: path + ".times"}
	var text []byte
	var marks logtime.Index
	for n := range 22 {
		marks = append(marks, logtime.Mark{Offset: int64(len(text)), At: time.Unix(int64(n+1), 0).UTC()})
		text = append(text, "line\n"...)
		for path, data := range map[string][]byte{path: text, path + ".times": marks.Bytes()} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := ship.Ship(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.data != 22 || s.times != 4 {
		t.Errorf("%d writes of data and %d of times, want 22 and 4", s.data, s.times)
	}
	if err := ship.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkTimes(t, inner, store.LogName{Job: "a", Attempt: 1}, marks)
}

// checkTimes checks that the store has the times of all that is shipped.
func checkTimes(t interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}, s store.Store, of store.LogName, want logtime.Index) {
	t.Helper()
	_, err := store.ReadDatedLog(context.Background(), s, of, 0, func(part store.LogPart) error {
		for i := range part.Data {
			if i%100 != 0 && i != len(part.Data)-1 {
				continue
			}
			at := part.Offset + int64(i)
			if got, want := part.Times.At(at), want.At(at); !got.Equal(want) {
				t.Fatalf("byte %d was written at %v, want %v", at, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTailLogsFromAnywhere(t *testing.T) {
	s, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const id = "a-0123456789ab"
	for i, chunk := range []string{"0123", "4567", "89"} {
		if _, err := s.Put(t.Context(), store.LogKey(id, 1, 0, i), []byte(chunk), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		from, next int64
		want       string
	}{{0, 4, "0123"}, {2, 4, "23"}, {4, 8, "4567"}, {9, 10, "9"}, {10, 10, ""}, {99, 99, ""}} {
		data, next, err := tailLogs(t.Context(), s, id, 1, 0, test.from)
		if err != nil || string(data) != test.want || next != test.next {
			t.Errorf("from %d: %q, %d, %v, want %q, %d", test.from, data, next, err, test.want, test.next)
		}
	}
	if data, _, err := tailLogs(t.Context(), s, id, 2, 0, 0); err != nil || len(data) > 0 {
		t.Errorf("logs of another attempt: %q, %v", data, err)
	}
}

var errOnePart = errors.New("one part is enough")

// tailLogs is what a task of a job, named by its id, has written from an offset
// on, at most one chunk of it, and the offset that follows.
func tailLogs(ctx context.Context, s store.Store, job string, attempt, task int, from int64) (data []byte, next int64, err error) {
	_, err = store.ReadLog(ctx, s, store.LogName{Job: job, Attempt: attempt, Task: task}, from, func(part []byte) error {
		data = bytes.Clone(part)
		return errOnePart
	})
	if errors.Is(err, errOnePart) {
		err = nil
	}
	return data, from + int64(len(data)), err
}
