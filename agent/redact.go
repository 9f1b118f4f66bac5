package agent

import (
	"slices"
	"strings"
)

// leastSecret is the least length of a secret that is looked for in what a task
// wrote: hiding every "1" would hide nothing and garble everything.
const leastSecret = 4

// redact hides a task's secrets in what is reported of it: a program's last
// words and a health check's output reach the state and other people's screens.
// Its log is its own.
func (t *task) redact(texts ...*string) {
	secrets := t.secrets()
	if len(secrets) == 0 {
		return
	}
	for _, text := range texts {
		for _, secret := range secrets {
			*text = strings.ReplaceAll(*text, secret, "(sensitive value)")
		}
	}
}

// secrets are the task's sensitive values in clear; none where an adopted task
// has not learnt yet what it is part of.
func (t *task) secrets() []string {
	select {
	case <-t.runSeen:
	default:
		return nil
	}
	texts := slices.Clone(t.run.Spec.Command)
	for _, text := range t.run.Spec.Environment.Env {
		texts = append(texts, text)
	}
	var found []string
	if token := t.token(); token != "" {
		found = append(found, token)
	}
	for _, text := range texts {
		if !text.IsSensitive() {
			continue
		}
		if value, err := text.Reveal(t.agent.Sealer); err == nil && len(value) >= leastSecret {
			found = append(found, value)
		}
	}
	return found
}
