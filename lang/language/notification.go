package language

import (
	"github.com/fray-ml/fray/schema"
)

func notificationType() *BlockType {
	return &BlockType{
		Name: "notification", Label: "NAME", Repeated: true,
		Doc: "where the controller reports what happens to the stack; one receiver at least",
		Attrs: []Attribute{
			{Name: "on", Type: "list of strings", Required: true, Values: valuesOf(schema.NoticeKinds()...), Doc: "what is reported: drift, job_failed, job_pending, budget, reservation_ended, leader_changed"},
			{Name: "pending_after", Type: "duration", Default: "30m", Doc: "how long a job may be pending before that is reported"},
			{Name: "budget_at", Type: "number", Default: "0.9", Doc: "the part of a budget, above 0 and up to 1, from which on its use is reported"},
			{Name: "namespaces", Type: "list of strings", Default: "all", Doc: "names of the namespaces that are reported of"},
		},
		Blocks: []*BlockType{
			{
				Name: "slack", Doc: "an incoming webhook of Slack, or of a service that takes the same messages",
				Attrs: []Attribute{
					{Name: "url", Type: "string", Required: true, Doc: "https://…; it is sensitive wherever it is shown"},
				},
			},
			{
				Name: "webhook", Doc: "an address to which notices are posted as JSON",
				Attrs: []Attribute{
					{Name: "url", Type: "string", Required: true, Doc: "https://…; it is sensitive wherever it is shown"},
					{Name: "secret", Type: "string", Default: "messages are not signed", Doc: "with which messages are signed, as Standard Webhooks does; it is sensitive"},
				},
			},
			{
				Name: "command", Doc: "a program of the controller's machine, which reads a notice as JSON from its standard input",
				Attrs: []Attribute{
					{Name: "command", Type: "list of strings", Required: true, Doc: "program and arguments"},
				},
			},
		},
	}
}
