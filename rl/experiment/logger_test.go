package experiment_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl/experiment"
)

var when = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func record() experiment.Record {
	return experiment.Record{Time: when, Step: 10, Data: map[string]any{"reward": 0.51239, "loss": math.NaN(), "n": int64(3), "note": "text"}}
}

func TestConsole(t *testing.T) {
	var out bytes.Buffer
	if err := experiment.NewConsole(&out).Log(record()); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "step 10  loss NaN  n 3  note text  reward 0.5124\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSONLAppendsWholeLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.jsonl")
	if err := os.WriteFile(path, []byte("{\"step\":9}\n{\"step\":1"), 0o644); err != nil { // a crash in the middle of a line
		t.Fatal(err)
	}
	logger, err := experiment.NewJSONL(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := record()
	r.Data["deep"] = map[string]any{"list": []any{math.Inf(1), 2}}
	if err := logger.Log(r); err != nil {
		t.Fatal(err)
	}
	if err := logger.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var got struct {
		Time time.Time
		Step int64
		Data map[string]any
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("line %q: %v", lines[len(lines)-1], err)
	}
	if len(lines) != 3 || got.Step != 10 || !got.Time.Equal(when) || got.Data["reward"] != 0.51239 || got.Data["loss"] != "NaN" ||
		fmt.Sprint(got.Data["deep"]) != "map[list:[+Inf 2]]" {
		t.Errorf("got %d lines, the last %+v", len(lines), got)
	}
}

// The bytes are those that tensorflow's TFRecord and event.proto define. The real package reads them in
// python/tests/engines/loggers.
func TestTensorboardRecords(t *testing.T) {
	dir := t.TempDir()
	writeEvents(t, dir)
	names, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("event files %v, %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	var events [][]byte
	for len(text) > 0 {
		n := binary.LittleEndian.Uint64(text)
		if got, want := binary.LittleEndian.Uint32(text[8:]), masked(text[:8]); got != want {
			t.Fatalf("checksum of the length: %x, want %x", got, want)
		}
		event := text[12 : 12+n]
		if got, want := binary.LittleEndian.Uint32(text[12+n:]), masked(event); got != want {
			t.Fatalf("checksum of the event: %x, want %x", got, want)
		}
		events = append(events, event)
		text = text[16+n:]
	}
	if len(events) != 3 || !bytes.Contains(events[0], []byte("brain.Event:2")) || !bytes.Contains(events[1], []byte("reward")) ||
		bytes.Contains(events[1], []byte("note")) {
		t.Errorf("events %q", events)
	}
}

func writeEvents(t *testing.T, dir string) {
	t.Helper()
	logger, err := experiment.NewTensorboard(dir, "host", when)
	if err != nil {
		t.Fatal(err)
	}
	for step := range int64(2) {
		r := record()
		r.Step += step
		if err := logger.Log(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := logger.Log(experiment.Record{Step: 12, Title: "only text"}); err != nil {
		t.Fatal(err)
	}
	if err := logger.Close(); err != nil {
		t.Fatal(err)
	}
}

func masked(data []byte) uint32 {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return (sum>>15 | sum<<17) + 0xa282ead8
}
