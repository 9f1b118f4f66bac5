package watch

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/fray-ml/fray/controller/loop"
)

// A watch on a terminal prints news and warnings, and news is no warning.
func TestNewsIsNoWarning(t *testing.T) {
	var out bytes.Buffer
	log := newLog(&out, loop.LevelNews)
	log.Info("at length")
	log.Log(t.Context(), loop.LevelNews, "configuration taken over")
	log.Warn("step failed")
	if got := out.String(); strings.Contains(got, "at length") || !strings.Contains(got, `level=INFO msg="configuration taken over"`) ||
		!strings.Contains(got, `level=WARN msg="step failed"`) || strings.Count(got, "\n") != 2 {
		t.Errorf("got %q, want the news as INFO and the warning as WARN", got)
	}
	out.Reset()
	newLog(&out, slog.LevelInfo).Info("at length")
	if got := out.String(); !strings.Contains(got, "level=INFO") {
		t.Errorf("got %q, want it at length", got)
	}
}
