package schema

import (
	"fmt"
	"slices"
	"time"
)

// NoticeKind is a closed set of what a notification reports.
type NoticeKind string

// The kinds of notices.
const (
	NoticeDrift            NoticeKind = "drift"             // something differs from the state by itself
	NoticeJobFailed        NoticeKind = "job_failed"        // a job has failed for good
	NoticeJobPending       NoticeKind = "job_pending"       // a job has been pending for too long
	NoticeBudget           NoticeKind = "budget"            // a budget is nearly used
	NoticeReservationEnded NoticeKind = "reservation_ended" // the time of a reservation is over
	NoticeLeaderChanged    NoticeKind = "leader_changed"    // another process leads the stack
	// NoticeTest is what fray notify test sends; no notification names it.
	NoticeTest NoticeKind = "test"
)

// NoticeKinds are all of them.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeDrift, NoticeJobFailed, NoticeJobPending, NoticeBudget, NoticeReservationEnded, NoticeLeaderChanged}
}

// Defaults of notifications.
const (
	DefaultPendingAfter = Duration(30 * time.Minute)
	DefaultBudgetAt     = 0.9
)

// Notification is where the controller reports what happens to a stack, and which of it.
// At least one of its receivers is set.
type Notification struct {
	Addr Address      `json:"addr"`
	On   []NoticeKind `json:"on"` // sorted
	// PendingAfter is how long a job may be pending before that is reported.
	PendingAfter Duration `json:"pending_after"`
	// BudgetAt is the part of a budget from which on its use is reported.
	BudgetAt float64 `json:"budget_at"`
	// Namespaces are the scoped names of those that it reports of, sorted; none: of all.
	Namespaces []string         `json:"namespaces,omitempty"`
	Slack      *SlackReceiver   `json:"slack,omitempty"`
	Webhook    *WebhookReceiver `json:"webhook,omitempty"`
	Command    *CommandReceiver `json:"command,omitempty"`
}

// SlackReceiver is an incoming webhook that takes messages as Slack does.
type SlackReceiver struct {
	URL Text `json:"url"` // a secret: with it anyone can post
}

// WebhookReceiver takes notices as JSON.
type WebhookReceiver struct {
	URL Text `json:"url"` // a secret
	// Secret signs the messages; the zero Text: they are not signed.
	Secret Text `json:"secret,omitzero"`
}

// CommandReceiver is a program that reads a notice as JSON from its standard input.
type CommandReceiver struct {
	Command []Text `json:"command"`
}

// Receiver is a closed set of the kinds of receivers that a notification may have.
type Receiver string

// The receivers.
const (
	ReceiverSlack   Receiver = "slack"
	ReceiverWebhook Receiver = "webhook"
	ReceiverCommand Receiver = "command"
)

// Receivers are those that a notification has.
func (n *Notification) Receivers() []Receiver {
	var has []Receiver
	if n.Slack != nil {
		has = append(has, ReceiverSlack)
	}
	if n.Webhook != nil {
		has = append(has, ReceiverWebhook)
	}
	if n.Command != nil {
		has = append(has, ReceiverCommand)
	}
	return has
}

// EqualNotifications reports whether two specs are the same.
func EqualNotifications(a, b *Notification) bool {
	if a.Addr != b.Addr || !slices.Equal(a.On, b.On) || a.PendingAfter != b.PendingAfter || a.BudgetAt != b.BudgetAt || !slices.Equal(a.Namespaces, b.Namespaces) {
		return false
	}
	if !slices.Equal(a.Receivers(), b.Receivers()) {
		return false
	}
	return (a.Slack == nil || *a.Slack == *b.Slack) && (a.Webhook == nil || *a.Webhook == *b.Webhook) &&
		(a.Command == nil || slices.Equal(a.Command.Command, b.Command.Command))
}

// Secrets are the sensitive texts of a notification.
func (n *Notification) Secrets() []Text {
	var texts []Text
	_, _ = n.Each(func(t Text) (Text, error) {
		if t.IsSensitive() {
			texts = append(texts, t)
		}
		return t, nil
	})
	return texts
}

// Each returns a copy of a notification with what change makes of its texts.
func (n Notification) Each(change func(Text) (Text, error)) (Notification, error) {
	var first error
	changed := func(t Text) Text {
		next, err := change(t)
		if err != nil && first == nil {
			first = fmt.Errorf("%s: %w", n.Addr, err)
		}
		return next
	}
	if n.Slack != nil {
		n.Slack = &SlackReceiver{URL: changed(n.Slack.URL)}
	}
	if n.Webhook != nil {
		n.Webhook = &WebhookReceiver{URL: changed(n.Webhook.URL), Secret: changed(n.Webhook.Secret)}
	}
	if n.Command != nil {
		words := make([]Text, len(n.Command.Command))
		for i, word := range n.Command.Command {
			words[i] = changed(word)
		}
		n.Command = &CommandReceiver{Command: words}
	}
	if first != nil {
		return Notification{}, first
	}
	return n, nil
}

// Reseal returns a copy of a notification, in which all that is sealed is sealed anew.
func (n Notification) Reseal(r Resealer) (Notification, error) {
	return n.Each(func(t Text) (Text, error) { return t.Reseal(r) })
}

// sealNotifications returns a copy of notifications with every secret in clear sealed.
func sealNotifications(all []Notification, s Sealer) ([]Notification, error) {
	if all == nil {
		return nil, nil
	}
	sealed := make([]Notification, len(all))
	for i := range all {
		var err error
		if sealed[i], err = all[i].Each(func(t Text) (Text, error) { return t.Seal(s) }); err != nil {
			return nil, err
		}
	}
	return sealed, nil
}
