package follow

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fray-ml/fray/curves"
)

// Lines come in pieces, and on a terminal a curve is drawn over the former one.
func TestPlotter(t *testing.T) {
	var out bytes.Buffer
	p := &plotter{out: &out, names: []string{"loss", "kl"}, size: curves.Size{Width: 40, Height: 5}, redraw: true}
	for _, piece := range []string{"step 0  lo", "ss 4\nother\nstep 1  loss 2\nstep 2  ", "loss 1"} {
		if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
	}
	if !p.fresh {
		t.Error("no metric has come")
	}
	p.draw()
	first := out.String()
	if !strings.HasPrefix(first, "loss  2 at step 1\n") || !strings.HasSuffix(first, "\n\nkl: no value yet\n") || strings.Contains(first, "\x1b") {
		t.Errorf("got\n%s", first)
	}
	if got, want := p.drawn, strings.Count(first, "\n"); got != want {
		t.Errorf("got %d lines drawn, want %d", got, want)
	}
	out.Reset()
	if _, err := p.Write([]byte("  kl 3\n")); err != nil {
		t.Fatal(err)
	}
	p.draw()
	if got, want := out.String(), "\x1b[10A\x1b[Jloss  1 at step 2\n"; !strings.HasPrefix(got, want) || !strings.Contains(got, "\nkl  3 at step 2\n") {
		t.Errorf("got %q, want it to begin with %q", got, want)
	}
	if p.fresh {
		t.Error("what is drawn counts as new")
	}
}

func TestMetricsThatAreNotThere(t *testing.T) {
	err := &NoMetricError{Name: "los", Known: []string{"loss", "kl"}}
	if got, want := err.Error(), `no line has the metric "los"; want one of loss, kl`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
