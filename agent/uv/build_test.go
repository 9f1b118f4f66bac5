package uv

import (
	"testing"
)

func TestIsProjectsFault(t *testing.T) {
	for _, test := range []struct {
		output string
		want   bool
	}{
		{"error: Extra `nope` is not defined in the `optional-dependencies` table for `tiny`", true},
		{"error: Group `nope` is not defined in the project's `dependency-groups` table", true},
		{"error: Unable to find lockfile at `uv.lock`, but `--frozen` was provided.", true},
		{"error: Failed to parse: pyproject.toml\n  cause: TOML parse error", true},
		{"error: Failed to fetch: `https://example.org/simple/x/`\n  cause: dns error", false},
		{"error: No space left on device (os error 28)", false},
	} {
		if got := isProjectsFault(test.output); got != test.want {
			t.Errorf("%q is the project's fault: %v, want %v", test.output, got, test.want)
		}
	}
}
