package keyring_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
)

func document() state.Document {
	return state.Document{
		FormatVersion: state.FormatVersion, Lineage: "a-lineage", Serial: 3,
		Outputs: map[string]schema.Output{"address": {Value: []byte(`"10.0.0.1"`)}},
	}
}

func encode(t *testing.T, c keyring.Codec) []byte {
	t.Helper()
	data, err := c.Encode(document())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Whatever the policy was when a document was written, it can be read, and the
// next write is as the policy says.
func TestCodec(t *testing.T) {
	box := lock{}.box(t)
	codecs := map[string]keyring.Codec{
		"in clear, without a key": {}, "in clear, with one": {Box: box}, "encrypted": {Box: box, Encrypt: true},
	}
	for from, writer := range codecs {
		data := encode(t, writer)
		if got := keyring.IsEncrypted(data); got != writer.Encrypt {
			t.Errorf("%s: encrypted is %v", from, got)
		}
		if writer.Encrypt == bytes.Contains(data, []byte("a-lineage")) {
			t.Errorf("%s: wrote %s", from, data)
		}
		for to, reader := range codecs {
			got, err := reader.Decode(data)
			if writer.Encrypt && reader.Box == nil {
				wantError(t, err, keyring.ErrLocked, "this state is encrypted with the key ")
				wantError(t, err, state.ErrEncrypted)
				continue
			}
			if err != nil || !reflect.DeepEqual(got, document()) {
				t.Errorf("%s to %s: got %+v, %v, want %+v", from, to, got, err, document())
			}
		}
	}
}

func TestCodecErrors(t *testing.T) {
	box, other := lock{}.box(t), lock{}.box(t)
	sound := encode(t, keyring.Codec{Box: box, Encrypt: true})
	changed := bytes.Replace(sound, []byte(`"data":"`), []byte(`"data":"AAAA`), 1)
	newer := bytes.Replace(sound, []byte(`"fray_encrypted":1`), []byte(`"fray_encrypted":2`), 1)
	future := seal(t, box, keyring.KindState, []byte(`{"format_version": 99}`))
	plan := seal(t, box, keyring.KindPlan, []byte(`{}`))
	tests := []struct {
		name string
		data []byte
		is   []error
	}{
		{"changed", changed, []error{state.ErrDamaged, keyring.ErrDamaged}},
		{"cut", sound[:100], []error{state.ErrDamaged, keyring.ErrDamaged}},
		{"in a newer envelope", newer, []error{state.ErrNewer, keyring.ErrNewer}},
		{"newer inside", future, []error{state.ErrNewer}},
		{"no state inside", seal(t, box, keyring.KindState, []byte("hello")), []error{state.ErrDamaged}},
		{"a plan", plan, []error{keyring.ErrWrongKind}},
		{"another key's", encode(t, keyring.Codec{Box: other, Encrypt: true}), []error{keyring.ErrWrongKey}},
		{"damaged in clear", []byte("{"), []error{state.ErrDamaged}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := keyring.Codec{Box: box}.Decode(test.data)
			for _, is := range test.is {
				if !errors.Is(err, is) {
					t.Errorf("got %+v, %v, want %v", got, err, is)
				}
			}
		})
	}
	_, err := keyring.Codec{Encrypt: true}.Encode(document())
	wantError(t, err, nil, "encode state: it is to be encrypted, and the stack's key is not at hand")
}
