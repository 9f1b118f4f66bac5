package schema_test

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

func TestCheckCloudLabel(t *testing.T) {
	longest := strings.Repeat("a", 63)
	tests := []struct {
		name, key, value string
		want             string // in the error; "": none
	}{
		{"plain", "team", "vision", ""},
		{"every character", "a_b-0", "9_z-", ""},
		{"no value", "team", "", ""},
		{"longest", longest, longest, ""},
		{"no key", "", "x", "is empty"},
		{"key of 64", longest + "a", "x", "has 64 characters: a label's key may have 63"},
		{"value of 64", "team", longest + "a", `the value of "team" has 64 characters`},
		{"key in capitals", "teamName", "x", `the key "teamName" has 'N'`},
		{"key begins with a digit", "1st", "x", "must begin with a lower-case letter"},
		{"key begins with a dash", "-a", "x", "must begin with a lower-case letter"},
		{"value with a space", "team", "my team", `the value "my team" of "team" has ' '`},
		{"value with a dot", "team", "v1.2", "has '.'"},
		{"value with a comma", "team", "a,b", "has ','"},
		{"of another script", "team", "größe", "has 'ö'"},
		{"one of fray's", "fray-stack", "x", "fray sets itself"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := schema.CheckCloudLabel(test.key, test.value)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
