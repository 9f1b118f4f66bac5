package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// hideInherited treats what a job hands on to one that it launches as it was
// treated itself: a text that has one of the parent's sensitive values in it is
// sealed, and what tasks of the job write of such a value is hidden.
func hideInherited(spec *schema.Job, parent *state.Job, sealer schema.Sealer) error {
	if spec == nil || parent == nil || !parent.Spec.HasSecrets() {
		return nil
	}
	spec.Sensitive = parent.Spec.Secrets()
	var values []string
	for _, text := range spec.Sensitive {
		value, err := text.Reveal(sealer)
		if err != nil {
			return fmt.Errorf("compare with the sensitive values of %s: %w", parent.Spec.Addr, err)
		}
		if len(value) >= schema.LeastSecret {
			values = append(values, value)
		}
	}
	sealed := func(t schema.Text) (schema.Text, error) {
		if t.IsSensitive() || t.IsUnknown() || !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(t.String(), v) }) {
			return t, nil
		}
		return schema.Secret(t.String()).Seal(sealer)
	}
	spec.Command = slices.Clone(spec.Command)
	for i, word := range spec.Command {
		var err error
		if spec.Command[i], err = sealed(word); err != nil {
			return fmt.Errorf("command: %w", err)
		}
	}
	spec.Environment.Env = maps.Clone(spec.Environment.Env)
	for name, text := range spec.Environment.Env {
		var err error
		if spec.Environment.Env[name], err = sealed(text); err != nil {
			return fmt.Errorf("environment variable %s: %w", name, err)
		}
	}
	return nil
}
