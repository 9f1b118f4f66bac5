package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// counted counts the bytes that are read.
type counted struct {
	Logs
	bytes int
}

func (c *counted) Read(ctx context.Context, task LogStream, from int64) (store.LogPart, error) {
	part, err := c.Logs.Read(ctx, task, from)
	c.bytes += len(part.Data)
	return part, err
}

// The curves of a job are those of its first task over all attempts, and each part of the log is read once.
func TestCurves(t *testing.T) {
	logs := &memory{most: 700}
	reading := &counted{Logs: logs}
	s := pageOf(t, running(), func(c *Config) { c.Logs = reading })
	former, last := LogStream{Job: "id-root", Attempt: 1}, LogStream{Job: "id-root", Attempt: 2}
	logs.write(former, "step 0  loss 900\nstep 1  loss 800\n")
	for step := range 99 {
		logs.write(last, fmt.Sprintf("step %d  loss %d  val/match %g\nsome other line\n", step+1, 99-step, float64(step)/100))
	}
	logs.write(LogStream{Job: "id-root", Attempt: 2, Task: 1}, "step 7  loss 5000\n")
	logs.write(last, "step 100  loss 0  val/match") // its end comes later
	const path = "/api/v1/jobs/id-root/curves"
	got := decode[CurvesAnswer](t, s, path)
	if len(got.Curves) != 2 || got.Curves[0].Name != "val/match" || got.Curves[1].Name != "loss" {
		t.Fatalf("got %+v, want the curves val/match and loss", got)
	}
	if c := got.Curves[1]; len(c.Steps) != 100 || c.Steps[99] != 99 || c.Values[0] != 900 || c.Values[1] != 99 || c.Values[7] != 93 {
		t.Errorf("got steps %v with losses %v", c.Steps, c.Values)
	}
	logs.write(last, " 1\nstep 3  loss 1\n")
	before := reading.bytes
	got = decode[CurvesAnswer](t, s, path)
	if c := got.Curves[0]; len(c.Steps) != 100 || c.Steps[99] != 100 || c.Values[99] != 1 {
		t.Errorf("got steps %v of val/match, want the last one to be 100", c.Steps)
	}
	if c := got.Curves[1]; c.Values[3] != 1 {
		t.Errorf("got loss %g at the step that came again, want 1", c.Values[3])
	}
	if again := reading.bytes - before; again > 100 {
		t.Errorf("%d bytes were read, want those that are new", again)
	}
}

// The page draws the curves of a job, and others as they come.
func TestCurvesInABrowser(t *testing.T) {
	logs := &memory{}
	last := LogStream{Job: "id-root", Attempt: 2}
	s := pageOf(t, running(), func(c *Config) { c.Logs, c.Now = logs, time.Now })
	logs.write(last, "step 0  val/match 0.02\nstep 10  val/match 0.8  a 1  b 2  c 3  d 4  e 5  f 6\n")
	b := openBrowser(t, s)
	b.open("#/jobs/id-root")
	b.await("a curve for each metric", `document.querySelectorAll(".curves path.curve").length === 7`)
	b.await("its words", `document.querySelector(".curves svg").getAttribute("aria-label") === "val/match: 0.8 at step 10, from 0.02 to 0.8 over steps 0 to 10"`)
	logs.write(last, "step 20  val/match 1\n")
	b.await("the next value", `document.querySelector(".curves figcaption b").textContent === "1"`)
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", strings.Join(said, "\n"))
	}
}

func TestJobsWithoutCurves(t *testing.T) {
	s := pageOf(t, running(), nil)
	if got := decode[CurvesAnswer](t, s, "/api/v1/jobs/id-root/curves"); len(got.Curves) != 0 {
		t.Errorf("got %+v, want no curves", got)
	}
	if w := ask(s, "/api/v1/jobs/none/curves", nil); w.Code != http.StatusNotFound {
		t.Errorf("got status %d for a job that is not there", w.Code)
	}
	failing := pageOf(t, running(), func(c *Config) { c.Logs = &memory{err: errors.New("the store is away")} })
	if w := ask(failing, "/api/v1/jobs/id-root/curves", nil); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "away") {
		t.Errorf("got status %d, %s", w.Code, w.Body)
	}
}
