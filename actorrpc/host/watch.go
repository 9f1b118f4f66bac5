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

	mu      sync.Mutex
	silence wire.Silence
	pings   uint64
	ended   bool
}

func newWatch(c *connection) *watch {
	cfg := c.server.cfg
	w := &watch{conn: c, silence: wire.Silence{Every: cfg.Keepalive, Patience: cfg.Patience}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(cfg.Keepalive, w.check)
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
	measure, next := w.silence.Look(w.conn.wire.Heard(), time.Now())
	switch measure {
	case wire.Ask:
		w.pings++
		ping := &wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: w.pings}}}
		go w.conn.post(ping) // it waits as long as much else is to be written; this goroutine cannot
	case wire.GiveUp:
		w.conn.server.log.Warn("a silent connection was ended", "peer", w.conn.net.RemoteAddr().String())
		w.conn.net.Close()
		return
	case wire.Wait:
	}
	w.timer.Reset(next)
}
