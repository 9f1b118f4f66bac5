package schema

import (
	"fmt"
)

// Reseal returns the Text with a sealed secret sealed anew.
func (t Text) Reseal(r Resealer) (Text, error) {
	if t.form != textSealed {
		return t, nil
	}
	sealed, err := r.Reseal(t.value)
	if err != nil {
		return Text{}, err
	}
	return Text{form: textSealed, value: sealed}, nil
}

// Reseal returns a copy of a job, in which all that is sealed is sealed anew; j is
// not changed.
func (j Job) Reseal(r Resealer) (Job, error) {
	var err error
	if j.Command, err = resealTexts(r, j.Command); err != nil {
		return Job{}, fmt.Errorf("%s command: %w", j.Addr, err)
	}
	if j.Sensitive, err = resealTexts(r, j.Sensitive); err != nil {
		return Job{}, fmt.Errorf("sensitive value of %s: %w", j.Addr, err)
	}
	sortedTexts(j.Sensitive) // their order follows from how they are sealed
	if j.Environment.Env == nil {
		return j, nil
	}
	env := make(map[string]Text, len(j.Environment.Env))
	for name, t := range j.Environment.Env {
		if env[name], err = t.Reseal(r); err != nil {
			return Job{}, fmt.Errorf("%s env: %s: %w", j.Addr, name, err)
		}
	}
	j.Environment.Env = env
	return j, nil
}

func resealTexts(r Resealer, texts []Text) ([]Text, error) {
	if texts == nil {
		return nil, nil
	}
	sealed := make([]Text, len(texts))
	for i, t := range texts {
		var err error
		if sealed[i], err = t.Reseal(r); err != nil {
			return nil, err
		}
	}
	return sealed, nil
}

// ResealOutputs returns a copy of outputs with every sealed one sealed anew.
func ResealOutputs(outputs map[string]Output, r Resealer) (map[string]Output, error) {
	if outputs == nil {
		return nil, nil
	}
	sealed := make(map[string]Output, len(outputs))
	for name, o := range outputs {
		secret, err := o.Secret.Reseal(r)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		o.Secret = secret
		sealed[name] = o
	}
	return sealed, nil
}

// CheckSealed returns why something sealed of the jobs cannot be opened: most likely
// the stack's key has changed since it was sealed.
func (d Desired) CheckSealed(s Sealer) error {
	for i := range d.Jobs {
		for _, t := range d.Jobs[i].Secrets() {
			if _, err := t.Reveal(s); err != nil {
				return fmt.Errorf("%s: %w", d.Jobs[i].Addr, err)
			}
		}
	}
	for i := range d.Notifications {
		for _, t := range d.Notifications[i].Secrets() {
			if _, err := t.Reveal(s); err != nil {
				return fmt.Errorf("%s: %w", d.Notifications[i].Addr, err)
			}
		}
	}
	return nil
}
