package curves

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl/experiment"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string
		step int64
		want string
	}{
		{"step 10  val/exact_match 0.645  val/reward 0.8", 10, "[{val/exact_match 0.645} {val/reward 0.8}]"},
		{"step 3  loss 1e-05  done true  note a text\r\n", 3, "[{loss 1e-05}]"},
		{"step 3  loss NaN  reward +Inf  kl 2", 3, "[{kl 2}]"},
		{"step 3: loss 4", 0, "[]"},
		{"steps 3  loss 4", 0, "[]"},
		{"step 3 loss 4", 0, "[]"},
		{"step 3", 0, "[]"},
		{"step 3  loss NaN", 0, "[]"},
		{"step 3  " + strings.Repeat("x", maxName+1) + " 4", 0, "[]"},
		{"", 0, "[]"},
	} {
		step, metrics, ok := Parse(c.line)
		if !ok {
			step = 0
		}
		if got := fmt.Sprint(metrics); step != c.step || got != c.want && ok || ok != (c.want != "[]") {
			t.Errorf("%q: got step %d, %s, %v; want step %d, %s", c.line, step, got, ok, c.step, c.want)
		}
	}
}

// What the console logger of a run prints has curves.
func TestLinesOfTheConsoleLogger(t *testing.T) {
	var out strings.Builder
	console := experiment.NewConsole(&out)
	for step := range int64(3) {
		data := map[string]any{"val/exact_match": float64(step) / 2, "rollout/count": step, "text": "no number"}
		if err := console.Log(experiment.Record{Time: time.Unix(0, 0), Step: step, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	if err := console.Log(experiment.Record{Step: 2, Title: "a title", Content: "step 9  x 1"}); err != nil {
		t.Fatal(err)
	}
	var s Set
	for line := range strings.Lines(out.String()) {
		s.Add(line)
	}
	if got := s.Names(); !slices.Equal(got[:2], []string{"val/exact_match", "rollout/count"}) {
		t.Errorf("got the metrics %q", got)
	}
	if got, want := fmt.Sprint(s.Points("val/exact_match")), "[{0 0} {1 0.5} {2 1}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A step that comes again replaces the former one, and points stay sorted.
func TestStepsThatComeAgain(t *testing.T) {
	var s Set
	for _, line := range []string{"step 1  a 1", "step 2  a 2", "step 3  a 3", "step 2  a 5", "step 0  a 0", "step -4  a 9", "nothing"} {
		s.Add(line)
	}
	if got, want := fmt.Sprint(s.Points("a")), "[{-4 9} {0 0} {1 1} {2 5} {3 3}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Points("b") != nil {
		t.Error("there are points of a metric that never came")
	}
}

// However many steps and metrics there are, a set is bounded, and has the first steps as well as the last.
func TestSetsAreBounded(t *testing.T) {
	var s Set
	const steps = 20_000
	for i := range steps {
		s.Add(fmt.Sprintf("step %d  a %d", i, i))
	}
	points := s.Points("a")
	if len(points) > maxPoints || len(points) < maxPoints/2 {
		t.Fatalf("got %d points, want %d to %d", len(points), maxPoints/2, maxPoints)
	}
	if first, last := points[0].Step, points[len(points)-1].Step; first > steps/maxPoints*4 || last != steps-1 {
		t.Errorf("got steps %d to %d", first, last)
	}
	for i, p := range points {
		if float64(p.Step) != p.Value || i > 0 && p.Step <= points[i-1].Step {
			t.Fatalf("point %d is %v after %v", i, p, points[max(0, i-1)])
		}
	}
	for i := range 10 * maxNames {
		s.Add(fmt.Sprintf("step 1  m%d 1", i))
	}
	if n := len(s.Names()); n != maxNames {
		t.Errorf("got %d metrics, want %d", n, maxNames)
	}
}

func TestChart(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []Point
		size   Size
		want   string
	}{
		{"val/exact_match", []Point{{0, 0.02}, {10, 0.3}, {20, 0.9}, {30, 1}, {60, 1}}, Size{Width: 28, Height: 6}, `
val/exact_match  1 at step 60
  1 ┤⠀⠀⠀⠀⠀⠀⠀⡠⠤⠔⠒⠊⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉
    │⠀⠀⠀⠀⠀⢀⠜
0.5 ┤⠀⠀⠀⠀⢠⠊
    │⠀⠀⠀⡠⠃
  0 ┤⣀⠔⠉
    └───────────────────────
     0                    60
`},
		{"loss", []Point{{3, 7}}, Size{}, `
loss  7 at step 3
10.5 ┤
     │
   7 ┤⠂
     │
 3.5 ┤
     └──────────────────
      3
`},
		{"loss", []Point{{-1, 2e-5}, {0, 1e-5}}, Size{Width: 24, Height: 5}, `
loss  1e-05 at step 0
  2e-05 ┤⠉⠒⢄⡀
        │⠀⠀⠀⠈⠒⢄⡀
1.5e-05 ┤⠀⠀⠀⠀⠀⠀⠈⠒⢄⡀
        │⠀⠀⠀⠀⠀⠀⠀⠀⠀⠈⠒⢄⡀
  1e-05 ┤⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠈⠒⢄
        └───────────────
         -1            0
`},
		{"none", nil, Size{}, "\nnone: no value yet\n"},
	} {
		if got := "\n" + Chart(c.name, c.points, c.size); got != c.want {
			t.Errorf("got%s\nwant%s", got, c.want)
		}
	}
}
