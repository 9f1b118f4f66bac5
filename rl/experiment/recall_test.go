package experiment_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fray-ml/fray/rl/experiment"
)

// A process that goes on with a file knows the records that may come again, and none that the run has gone back from.
func TestIDsOfAFile(t *testing.T) {
	for name, test := range map[string]struct {
		lines string
		step  int64
		want  []string
	}{
		"no file":                 {"", 3, nil},
		"all steps":               {"{\"step\":1,\"id\":\"a\"}\n{\"step\":2}\n{\"step\":2,\"id\":\"b\"}\n", 2, []string{"b", "a"}},
		"behind the present step": {"{\"step\":1,\"id\":\"a\"}\n{\"step\":2,\"id\":\"b\"}\n", 1, []string{"a"}},
		"since the step went back": {
			"{\"step\":1,\"id\":\"a\"}\n{\"step\":2,\"id\":\"b\"}\n{\"step\":3,\"id\":\"c\"}\n{\"step\":2,\"id\":\"d\"}\n{\"step\":3,\"id\":\"e\"}\n", 3, []string{"e", "d"},
		},
		"a torn line": {"{\"step\":1,\"id\":\"a\"}\n{\"step\":2,\"i", 2, []string{"a"}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte(test.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := experiment.NewJSONL(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := j.IDs(test.step, 9); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
		if got, err := j.IDs(test.step, 1); err != nil || len(got) > 1 {
			t.Errorf("%s: %q, %v; want one at most", name, got, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
