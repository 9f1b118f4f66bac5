package web

import (
	"fmt"
	"net/http"
	"time"
)

// staleStep is when a loop that has not stepped counts as stuck.
const staleStep = time.Minute

// Health is the answer of /healthz and /readyz: 200 if OK, else 503.
type Health struct {
	OK      bool     `json:"ok"`
	Reasons []string `json:"reasons"` // why not, or how it stands
	// LastStep is when the last step ended, absent before the first.
	LastStep time.Time `json:"last_step,omitzero"`
	Leads    bool      `json:"leads"`
	Epoch    uint64    `json:"epoch,omitempty"`
}

// healthz: the process is alive and, if it leads, its loop steps.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	snap := s.cfg.Source.Snapshot()
	h := healthOf(snap)
	switch {
	case snap == nil:
		h.OK, h.Reasons = true, append(h.Reasons, "it has not stepped yet")
	case !snap.Leads:
		h.OK, h.Reasons = true, append(h.Reasons, "it waits for the lease")
	case s.cfg.Now().Sub(snap.At) > staleStep:
		h.Reasons = append(h.Reasons, fmt.Sprintf("the last step ended %s ago", s.cfg.Now().Sub(snap.At).Truncate(time.Second)))
	default:
		h.OK, h.Reasons = true, append(h.Reasons, "the loop steps")
	}
	tell(w, h)
}

// readyz: it leads and has looked at the world.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	snap := s.cfg.Source.Snapshot()
	h := healthOf(snap)
	switch {
	case snap == nil || snap.At.IsZero():
		h.Reasons = append(h.Reasons, "its first step is not done")
	case !snap.Leads:
		h.Reasons = append(h.Reasons, "another process holds the lease")
	default:
		h.OK, h.Reasons = true, append(h.Reasons, "it leads")
	}
	tell(w, h)
}

func healthOf(snap *Snapshot) Health {
	if snap == nil {
		return Health{}
	}
	return Health{LastStep: snap.At, Leads: snap.Leads, Epoch: snap.Lease.Epoch}
}

func tell(w http.ResponseWriter, h Health) {
	status := http.StatusOK
	if !h.OK {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, h)
}
