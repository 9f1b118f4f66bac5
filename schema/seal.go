package schema

import (
	"fmt"
	"slices"
)

// Seal returns d with every secret in clear replaced by a sealed one; d is not changed, and
// what has no secrets is shared with it. Only what was sealed can be encoded.
func (d Desired) Seal(s Sealer) (Desired, error) {
	var jobs []Job // a copy, once there is a secret: there may be a million of them
	for i := range d.Jobs {
		if !d.Jobs[i].hasSecret() {
			continue
		}
		if jobs == nil {
			jobs = slices.Clone(d.Jobs)
		}
		j := jobs[i]
		var err error
		if j.Sensitive, err = j.sealSources(s); err != nil {
			return Desired{}, err
		}
		if j.Command, err = sealTexts(s, j.Command); err != nil {
			return Desired{}, fmt.Errorf("%s command: %w", j.Addr, err)
		}
		if j.Environment.Env, err = sealTextMap(s, j.Environment.Env); err != nil {
			return Desired{}, fmt.Errorf("%s env: %w", j.Addr, err)
		}
		jobs[i] = j
	}
	if jobs != nil {
		d.Jobs = jobs
	}
	var err error
	if d.Notifications, err = sealNotifications(d.Notifications, s); err != nil {
		return Desired{}, err
	}
	return d, nil
}

// Refined returns a copy of d, which is sealed, with the commands and
// environments of jobs, see [Refinement]. d is not changed.
func (d Desired) Refined(jobs []Job, s Sealer) (Desired, error) {
	sealed, err := Desired{Jobs: jobs}.Seal(s)
	if err != nil {
		return Desired{}, err
	}
	d.Jobs = slices.Clone(d.Jobs)
	for i := range sealed.Jobs {
		j := &sealed.Jobs[i]
		at, found := slices.BinarySearchFunc(d.Jobs, j.Addr, func(other Job, addr Address) int { return other.Addr.Compare(addr) })
		if !found {
			return Desired{}, fmt.Errorf("take in the values of %s: there is no such job", j.Addr)
		}
		d.Jobs[at].Command, d.Jobs[at].Environment.Env = j.Command, j.Environment.Env
		d.Jobs[at].Sensitive = JoinTexts(d.Jobs[at].Sensitive, j.Sensitive)
	}
	return d, nil
}

// SealOutputs returns a copy of outputs with every secret in clear replaced by a
// sealed one.
func SealOutputs(outputs map[string]Output, s Sealer) (map[string]Output, error) {
	if outputs == nil {
		return nil, nil
	}
	sealed := make(map[string]Output, len(outputs))
	for name, o := range outputs {
		secret, err := o.Secret.Seal(s)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		o.Secret = secret
		sealed[name] = o
	}
	return sealed, nil
}

// sealTexts seals a list of Texts; one without a secret is returned as it is.
func sealTexts(s Sealer, texts []Text) ([]Text, error) {
	var sealed []Text
	for i, t := range texts {
		if t.form != textSecret {
			continue
		}
		if sealed == nil {
			sealed = append(sealed, texts...)
		}
		var err error
		if sealed[i], err = t.Seal(s); err != nil {
			return nil, err
		}
	}
	if sealed == nil {
		return texts, nil
	}
	return sealed, nil
}

func sealTextMap(s Sealer, texts map[string]Text) (map[string]Text, error) {
	secret := false
	for _, t := range texts {
		secret = secret || t.form == textSecret
	}
	if !secret {
		return texts, nil
	}
	sealed := make(map[string]Text, len(texts))
	for name, t := range texts {
		var err error
		if sealed[name], err = t.Seal(s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return sealed, nil
}
