package notices

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan/notice"
)

// slackBody is a notice as Slack's incoming webhooks take it. Names and texts come from
// outside: they stand as code, in which neither formatting nor mentions are read.
func slackBody(sent *notice.Notice) []byte {
	sign := ":warning:"
	if sent.Status == notice.Resolved {
		sign = ":white_check_mark:"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", sign, slackCode(sent.Title))
	if sent.Workspace != "" && sent.Workspace != "default" {
		fmt.Fprintf(&b, " in workspace %s", slackCode(sent.Workspace))
	}
	for i := range sent.Items {
		item := &sent.Items[i]
		about := item.Addr.String()
		if item.Slice != "" {
			about = strings.TrimSpace(about + " slice " + item.Slice)
		}
		b.WriteString("\n• ")
		if about != "" {
			b.WriteString(slackCode(about) + " ")
		}
		b.WriteString(slackCode(item.Text))
	}
	if sent.More > 0 {
		fmt.Fprintf(&b, "\n… and %d more", sent.More)
	}
	data, err := json.Marshal(map[string]string{"text": b.String()})
	if err != nil {
		return nil // a map of strings has an encoding
	}
	return data
}

// slackCode is a text as code. "&", "<" and ">" have a meaning there too.
func slackCode(text string) string {
	text = strings.NewReplacer("`", "'", "\n", " ", "\r", " ", "&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
