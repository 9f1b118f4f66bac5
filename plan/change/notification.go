package change

import (
	"github.com/fray-ml/fray/schema"
)

// notificationAttrs are in the order of the language reference.
func (l *attrList) notificationAttrs(n *schema.Notification) {
	l.add("on", n.On, false)
	l.add("pending_after", n.PendingAfter, n.PendingAfter == schema.DefaultPendingAfter)
	l.add("budget_at", n.BudgetAt, n.BudgetAt == schema.DefaultBudgetAt)
	l.add("namespaces", n.Namespaces, len(n.Namespaces) == 0)
	if n.Slack != nil {
		l.text("slack.url", n.Slack.URL)
	}
	if n.Webhook != nil {
		l.text("webhook.url", n.Webhook.URL)
		if (n.Webhook.Secret != schema.Text{}) {
			l.text("webhook.secret", n.Webhook.Secret)
		}
	}
	if n.Command != nil {
		l.words("command.command", n.Command.Command)
	}
}
