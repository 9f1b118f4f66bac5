package task

import (
	"slices"

	"github.com/fray-ml/fray/agent/mask"
)

// hidden is what must not be in text that is kept of the task: in its log, its
// reports and their reasons. It is empty while an adopted task has not learnt
// yet what it is part of: its log is masked by its shim.
func (t *Task) hidden() *mask.Set {
	select {
	case <-t.runSeen:
	default:
		return nil
	}
	t.hiding.Do(func() { t.hide = mask.New(t.secrets()) })
	return t.hide
}

// secrets are the task's sensitive values in clear, and those that went into
// them.
func (t *Task) secrets() []string {
	texts := slices.Clone(t.run.Spec.Command)
	for _, text := range t.run.Spec.Environment.Env {
		texts = append(texts, text)
	}
	texts = append(texts, t.run.Spec.Sensitive...)
	var found []string
	if token := t.token(); token != "" {
		found = append(found, token)
	}
	for _, text := range texts {
		if !text.IsSensitive() {
			continue
		}
		if value, err := text.Reveal(t.host.Sealer); err == nil && len(value) >= mask.Least {
			found = append(found, value)
		}
	}
	return found
}
