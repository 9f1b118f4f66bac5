package notices

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
)

// Failure is why a receiver did not take a notice. Its text has nothing that is sensitive in
// it, and nothing that the receiver wrote.
type Failure struct {
	Cause notice.FailureCause
	Code  int // the status of HTTP, or that of a command's exit; 0: neither
	Text  string
	// Rejected says that the receiver is there and does not take this message.
	Rejected bool
	// After is how long it asked to be left alone, 0 for not.
	After time.Duration
}

func (f *Failure) Error() string { return f.Text }

// Sender sends notices.
type Sender struct {
	reveal  func(schema.Text) (string, error)
	client  *http.Client
	command time.Duration
	now     func() time.Time
}

// Times that a delivery may take, by default.
const (
	httpTime    = 15 * time.Second
	commandTime = 30 * time.Second
)

// NewSender returns a Sender that opens sensitive texts with reveal. The times bound an exchange
// over HTTP and a command; 0: 15 s and 30 s.
func NewSender(reveal func(schema.Text) (string, error), exchange, command time.Duration) *Sender {
	return &Sender{
		reveal: reveal, command: cmp.Or(command, commandTime), now: time.Now,
		client: &http.Client{
			Timeout: cmp.Or(exchange, httpTime),
			// A redirect would hand the message, and who may send it, to another address.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Send sends a notice to a receiver; nil: it was taken.
func (s *Sender) Send(ctx context.Context, n *schema.Notification, sent notice.Notice, to schema.Receiver) *Failure {
	switch {
	case to == schema.ReceiverSlack && n.Slack != nil:
		return s.slack(ctx, n.Slack, &sent)
	case to == schema.ReceiverWebhook && n.Webhook != nil:
		return s.webhook(ctx, n.Webhook, &sent)
	case to == schema.ReceiverCommand && n.Command != nil:
		return s.run(ctx, n.Command, &sent)
	}
	return &Failure{Cause: notice.CauseInvalid, Text: "the notification has no such receiver", Rejected: true}
}

// message is a notice as receivers get it.
type message struct {
	Version int `json:"version"`
	notice.Notice
}

func encode(sent *notice.Notice) ([]byte, *Failure) {
	m := message{Version: 1, Notice: *sent}
	m.To = nil
	data, err := json.Marshal(m)
	if err != nil {
		return nil, &Failure{Cause: notice.CauseInvalid, Text: "the notice cannot be encoded", Rejected: true}
	}
	return data, nil
}

// open is a text in clear, which failures do not repeat.
func (s *Sender) open(t schema.Text) (string, *Failure) {
	value, err := s.reveal(t)
	if err != nil {
		return "", &Failure{Cause: notice.CauseSealed, Text: "its sensitive values cannot be opened: the stack's key is another one than that which sealed them"}
	}
	return value, nil
}
