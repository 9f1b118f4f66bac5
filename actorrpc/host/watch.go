package host

import (
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// watch finds out when a client is gone without closing its connection.
type watch struct {
	conn   *wire.Conn
	giveUp func() // called once the client is taken for dead
	timer  *time.Timer

	mu      sync.Mutex
	silence wire.Silence
	pings   uint64
	ended   bool
}

func newWatch(conn *wire.Conn, silence wire.Silence, giveUp func()) *watch {
	w := &watch{conn: conn, giveUp: giveUp, silence: silence}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(silence.Every, w.check)
	return w
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// check pings a client that was silent, and gives one up that has not answered a ping.
func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	measure, next := w.silence.Look(w.conn.Heard(), time.Now())
	switch measure {
	case wire.Ask:
		w.pings++
		ping := &wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: w.pings}}}
		go func() { _ = w.conn.Post(ping, nil) }() // it waits as long as much else is to be written; this goroutine cannot
	case wire.GiveUp:
		w.giveUp()
		return
	case wire.Wait:
	}
	w.timer.Reset(next)
}
