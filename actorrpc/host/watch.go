package host

import (
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// watch finds out when a client is gone without a word.
type watch struct {
	conn  *connection
	timer *time.Timer

	mu    sync.Mutex
	heard uint64
	asked bool
	ended bool
}

func newWatch(c *connection) *watch {
	w := &watch{conn: c}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(c.server.cfg.Keepalive, w.check)
	return w
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// check asks a client that was silent for a word, and lets one go that was asked.
func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	cfg := w.conn.server.cfg
	heard := w.conn.wire.Heard()
	switch {
	case heard != w.heard:
		w.heard, w.asked = heard, false
		w.timer.Reset(cfg.Keepalive)
	case !w.asked:
		w.asked = true
		w.timer.Reset(cfg.Patience)
		// It waits as long as much else is to be written; this goroutine cannot.
		go w.conn.post(&wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: heard}}})
	default:
		w.conn.server.log.Warn("a silent connection was ended", "peer", w.conn.net.RemoteAddr().String())
		w.conn.net.Close()
	}
}
