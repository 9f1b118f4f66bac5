package amend_test

import (
	"bytes"
	"testing"

	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func stackKey(t *testing.T, s state.Secrets) *state.Key {
	t.Helper()
	k, err := state.KeyOf(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sealedState is a state in which all is sealed that can be, as carried out.
func sealedState(t *testing.T, key schema.Sealer) *state.Document {
	t.Helper()
	secret := func(text string) schema.Text {
		sealed, err := schema.Secret(text).Seal(key)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	one, two := schema.Address{Kind: schema.KindJob, Name: "one"}, schema.Address{Kind: schema.KindJob, Name: "two"}
	desired := schema.Desired{Jobs: []schema.Job{
		{
			Addr: one, Command: []schema.Text{schema.Plain("run"), secret("word")}, Sensitive: schema.JoinTexts(nil, []schema.Text{secret("aaaa"), secret("part"), secret("zzzz")}),
			Environment: schema.Environment{Env: map[string]schema.Text{"A": secret("value"), "B": schema.Plain("plain")}},
		},
		{Addr: two, Command: []schema.Text{schema.Plain("run")}},
	}}
	on := schema.Trigger{Addr: one}
	on.Digest = change.TriggerDigests(&desired, []schema.Trigger{on})[on]
	stale := schema.Trigger{Addr: one, Path: "command", Digest: "v1:of an earlier command"}
	desired.Jobs[1].Lifecycle.TriggeredBy = []schema.Trigger{on}
	doc := &state.Document{
		Desired: desired, Jobs: map[schema.Address]*state.Job{}, Former: state.Former{Past: map[string]*state.Job{}},
		Outputs: map[string]schema.Output{"o": {Sensitive: true, Secret: secret("out")}},
	}
	for i := range desired.Jobs {
		spec := desired.Jobs[i]
		if spec.Addr == two {
			spec.Lifecycle.TriggeredBy = []schema.Trigger{on, stale}
		}
		digest, err := schema.DigestOf(&spec)
		if err != nil {
			t.Fatal(err)
		}
		doc.Jobs[spec.Addr] = &state.Job{ID: spec.Addr.Name, Spec: &spec, Digest: digest, Status: schema.JobRunning}
	}
	past := *doc.Jobs[one]
	doc.Past["past"] = &past
	return doc
}

// After Reseal the new key alone opens everything, and the document is the one that
// would have come of sealing with the new key at first.
func TestResealIsAsIfTheNewKeyHadSealed(t *testing.T) {
	old, next := bytes.Repeat([]byte{1}, state.KeySize), bytes.Repeat([]byte{2}, state.KeySize)
	before := sealedState(t, stackKey(t, state.Secrets{Current: old}))
	before.Variables = &state.Variables{Key: "of the former key", Values: map[string]string{"steps": "of a value"}} // is dropped
	encoded, err := state.Encode(*before)
	if err != nil {
		t.Fatal(err)
	}
	after, err := amend.Reseal(before, stackKey(t, state.Secrets{Current: next, Former: [][]byte{old}}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := state.Encode(*after)
	if err != nil {
		t.Fatal(err)
	}
	want, err := state.Encode(*sealedState(t, stackKey(t, state.Secrets{Current: next})))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, err := state.Encode(*before); err != nil || !bytes.Equal(again, encoded) {
		t.Errorf("the document that was given has changed: %v", err)
	}
	for _, j := range before.Jobs {
		run := &state.Run{Job: j.Spec.Addr, Spec: *j.Spec, Digest: j.Digest}
		assigned, err := amend.ResealRun(run, stackKey(t, state.Secrets{Current: next, Former: [][]byte{old}}))
		if err != nil {
			t.Fatal(err)
		}
		want, err := schema.DigestOf(after.Jobs[j.Spec.Addr].Spec)
		if err != nil {
			t.Fatal(err)
		}
		if len(j.Spec.Lifecycle.TriggeredBy) == 0 && assigned.Digest != want {
			t.Errorf("%s is assigned with the digest %s, want the state's, %s", j.Spec.Addr, assigned.Digest, want)
		}
	}
}

// What neither key has sealed is not taken for anything.
func TestResealRefusesWhatNoKeyOpens(t *testing.T) {
	doc := sealedState(t, stackKey(t, state.Secrets{Current: bytes.Repeat([]byte{1}, state.KeySize)}))
	if got, err := amend.Reseal(doc, stackKey(t, state.Secrets{Current: bytes.Repeat([]byte{2}, state.KeySize)})); err == nil {
		t.Errorf("got %v, want an error", got)
	}
}
