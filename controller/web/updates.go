package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// heartbeat keeps a silent stream from being taken for a dead one.
const heartbeat = 15 * time.Second

// stream sends server-sent events, as the HTML standard defines them.
type stream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func openStream(w http.ResponseWriter) (*stream, error) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // of proxies
	st := &stream{w: w, c: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	return st, st.c.Flush()
}

// send sends one event; id is where to go on after a lost connection, "" for none.
func (s *stream) send(event, id string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\n%sdata: %s\n\n", event, id, data); err != nil {
		return err
	}
	return s.c.Flush()
}

func (s *stream) beat() error {
	if _, err := fmt.Fprint(s.w, ": still here\n\n"); err != nil {
		return err
	}
	return s.c.Flush()
}

// updates sends an overview with every frame, until the client goes away.
// A page that shows more requests it again once the version has risen.
func (s *Server) updates(w http.ResponseWriter, r *http.Request) {
	st, err := openStream(w)
	if err != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for f := s.current.Load(); ; {
		if st.send("update", "", s.overviewOf(f)) != nil {
			return
		}
		for superseded := false; !superseded; {
			select {
			case <-r.Context().Done():
				return
			case <-f.superseded:
				f, superseded = s.current.Load(), true
			case <-beat.C:
				if st.beat() != nil {
					return
				}
			}
		}
	}
}
