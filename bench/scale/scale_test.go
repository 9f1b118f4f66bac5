package scale_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/bench/scale"
)

// controls is the argument with which this binary is a controller's process.
const controls = "scale-controller"

// holds is the argument with which it is the bucket's process.
const holds = "scale-bucket"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == controls {
		if err := scale.Control(context.Background(), os.Args[2], "", os.Stdin, os.Stdout); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == holds {
		if err := scale.Bucket(os.Stdin, os.Stdout); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestMeasure measures a few hosts.
func TestMeasure(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	const slices, deaths = 2, 3
	r, err := scale.Bench{
		Slices: slices, Deaths: deaths, Quiet: time.Second, Settle: time.Second, Log: &log,
		Start:  func(ctx context.Context, url string) *exec.Cmd { return exec.CommandContext(ctx, self, controls, url) },
		Bucket: func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, self, holds) },
	}.Measure(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if r.Hosts != slices*scale.Hosts || len(r.Deaths) != deaths || r.Asked != slices {
		t.Errorf("measured %d hosts, %d deaths and %d slices asked for again, want %d, %d and %d", r.Hosts, len(r.Deaths), r.Asked, slices*scale.Hosts, deaths, slices)
	}
	if r.Quiet <= 0 || r.QuietPeak == 0 || r.Connected == 0 || r.First == 0 || r.Back == 0 || r.Again == 0 || r.Longest.Plan == 0 || r.CPU.Takeover == 0 {
		t.Errorf("left something out: %+v", r)
	}
	for _, row := range append(r.Rows(1024), r.Growth(r)) {
		if len(row) != 4 || strings.Contains(row[1], "NaN") {
			t.Errorf("the row %q has no place in the table", row)
		}
	}
}
