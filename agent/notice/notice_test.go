package notice

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A shell makes a file before it writes the notice: between the two there is no notice yet.
func TestFileThatIsBeingWritten(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a notice": {"needed elsewhere\nsoon\n", "needed elsewhere"},
		"none":     {"", unsaid},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "preempted")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				write("")
				var got string
				var err error
				go func() { got, err = File{Path: path}.Next(t.Context(), "") }()
				synctest.Wait() // it has looked once
				if got != "" {
					t.Fatalf("got %q of a file that was just made", got)
				}
				write(test.text)
				time.Sleep(RetryInterval)
				synctest.Wait()
				if got != test.want || err != nil {
					t.Errorf("got %q, %v; want %q", got, err, test.want)
				}
			})
		})
	}
}
