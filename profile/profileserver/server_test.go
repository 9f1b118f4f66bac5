package profileserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestStart serves at a socket whose directory has a long name, once for each process, and only to its user.
func TestStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, dir)
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+".sock")
	stop, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	again()
	if !answers(path) {
		t.Error("the end of a second part of the program ended the first one's")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	t.Chdir(dir)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Base(path))
	}}}
	get := func(path string, want int) []byte {
		t.Helper()
		answer, err := client.Get("http://x" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		data, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != want {
			t.Errorf("%s: %s, %v, want %d", path, answer.Status, err, want)
		}
		return data
	}
	for _, path := range []string{"/debug/pprof/heap", "/debug/pprof/profile?seconds=1"} {
		if _, err := profile.Parse(bytes.NewReader(get(path, http.StatusOK))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := get("/debug/pprof/goroutine?debug=2", http.StatusOK); !bytes.Contains(got, []byte("TestStart")) {
		t.Errorf("the stacks are %.200s", got)
	}
	get("/debug/pprof/profile?seconds=0", http.StatusBadRequest)
	get("/debug/pprof/profile?seconds=x", http.StatusBadRequest)
	get("/debug/pprof/cmdline", http.StatusNotFound)
	stop()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left")
	}
	if _, err := os.Create(path); err != nil { // of a process that had the same id
		t.Fatal(err)
	}
	stop, err = Start()
	if err != nil {
		t.Fatal(err)
	}
	stop()
}
