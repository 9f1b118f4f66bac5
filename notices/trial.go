package notices

import (
	"context"

	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
)

// Trial is what became of a notice at one receiver.
type Trial struct {
	Receiver schema.Receiver `json:"receiver"`
	// Failure is why the receiver did not take it, "" where it did.
	Failure string `json:"failure,omitempty"`
}

// Try sends a notice to all receivers of a notification, each once.
func (s *Sender) Try(ctx context.Context, n *schema.Notification, sent notice.Notice) []Trial {
	var trials []Trial
	for _, to := range n.Receivers() {
		t := Trial{Receiver: to}
		if failure := s.Send(ctx, n, sent, to); failure != nil {
			t.Failure = failure.Text
		}
		trials = append(trials, t)
	}
	return trials
}
