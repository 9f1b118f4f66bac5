package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/sleep"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, c := range map[string]struct {
			ctx  context.Context
			d    time.Duration
			want bool
			took time.Duration
		}{
			"the time passes":       {t.Context(), time.Hour, true, time.Hour},
			"the context ends":      {ends(time.Minute), time.Hour, false, time.Minute},
			"no time":               {t.Context(), 0, true, 0},
			"a negative time":       {t.Context(), -1, true, 0},
			"an ended context":      {ended, time.Hour, false, 0},
			"both are over at once": {ended, 0, false, 0},
		} {
			began := time.Now()
			if got := sleep.For(c.ctx, c.d); got != c.want || c.took != time.Minute && time.Since(began) != c.took {
				t.Errorf("%s: got %v after %v, want %v after %v", name, got, time.Since(began), c.want, c.took)
			}
		}
	})
}
