package checksum_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state/checksum"
)

func TestAppendKeepsTheForm(t *testing.T) {
	tests := []struct{ name, object, begins, ends string }{
		{"one line", `{"a":1}`, `{"a":1,"checksum":"sha256:`, "\"}\n"},
		{"one line with its end", "{\"a\":1}\n", `{"a":1,"checksum":"sha256:`, "\"}\n"},
		{"indented by one", "{\n \"a\": 1\n}\n", "{\n \"a\": 1,\n \"checksum\": \"sha256:", "\"\n}\n"},
		{"indented by two", "{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"checksum\": \"sha256:", "\"\n}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, err := checksum.Append([]byte(test.object))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(data), test.begins) || !strings.HasSuffix(string(data), test.ends) || !json.Valid(data) {
				t.Errorf("got %q, want JSON that begins with %q and ends with %q", data, test.begins, test.ends)
			}
			if got := checksum.Check(data); got != checksum.Valid {
				t.Errorf("got standing %d, want Valid", got)
			}
			object, standing := checksum.Cut(data)
			if standing != checksum.Valid || !json.Valid(object) || strings.Contains(string(object), checksum.Member) {
				t.Errorf("got %q, %d without the checksum, want the object", object, standing)
			}
			if again, err := checksum.Append(object); err != nil || string(again) != string(data) {
				t.Errorf("got %q, %v again, want %q", again, err, data)
			}
		})
	}
}

func TestAppendWantsAnObject(t *testing.T) {
	for _, object := range []string{``, `{}`, `[1]`, `{"a":1`, `null`, `}`} {
		if data, err := checksum.Append([]byte(object)); err == nil {
			t.Errorf("%s: got %q, want an error", object, data)
		}
	}
}

func TestCheckSeesEveryFlip(t *testing.T) {
	for _, object := range []string{`{"a":1,"b":[true]}`, "{\n  \"a\": 1,\n  \"b\": [\n    true\n  ]\n}"} {
		whole, err := checksum.Append([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			for bit := range 8 {
				data := append([]byte(nil), whole...)
				data[i] ^= 1 << bit
				if checksum.Check(data) == checksum.Valid {
					t.Errorf("bit %d of byte %d is flipped, and the checksum is valid: %q", bit, i, data)
				}
			}
			if checksum.Check(whole[:i]) == checksum.Valid {
				t.Errorf("%d bytes are there, and the checksum is valid", i)
			}
		}
	}
}

func TestCheckOfWhatHasNone(t *testing.T) {
	for _, data := range []string{``, `{}`, `{"a":1}`, `{"checksum":"x"}`, `{"checksum":1,"a":"` + strings.Repeat("x", 300) + `"}`} {
		object, standing := checksum.Cut([]byte(data))
		if standing != checksum.Missing || string(object) != data {
			t.Errorf("%s: got %q, standing %d, want it as it is, Missing", data, object, standing)
		}
	}
}
