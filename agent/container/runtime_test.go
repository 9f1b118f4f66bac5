package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programs makes the programs of a host: shell scripts by name. $0's directory has a
// file "up" once docker's service runs.
func programs(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range scripts {
		text := fmt.Sprintf("#!/bin/sh\ncd '%s'\n%s\n", dir, script)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

const (
	dockerOfService = "[ -e up ] || { echo Cannot connect to the Docker daemon; exit 1; }"
	brokenPodman    = "echo no subuid ranges; exit 125"
)

func TestFindRuntime(t *testing.T) {
	for _, test := range []struct {
		name    string
		scripts map[string]string
		want    string // name of the program
		waited  string // for which one
	}{
		{"docker", map[string]string{"docker": "", "podman": ""}, "docker", ""},
		{"podman alone", map[string]string{"podman": ""}, "podman", ""},
		{"podman where docker is down", map[string]string{"docker": dockerOfService, "podman": ""}, "podman", ""},
		{"docker is started", map[string]string{"docker": dockerOfService, "systemctl": `[ "$*" = "start docker" ] && : > up`}, "docker", "docker"},
		{"docker is started without systemd", map[string]string{"docker": dockerOfService, "systemctl": "exit 1", "service": `[ "$*" = "docker start" ] && : > up`}, "docker", "docker"},
		// It comes up by itself at the third attempt.
		{"docker is slow", map[string]string{"docker": "[ -e second ] || { [ -e first ] && : > second; : > first; exit 1; }"}, "docker", "docker"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := programs(t, test.scripts)
			waited := ""
			got, err := Finder{Waiting: func(program string) { waited = program }, interval: time.Millisecond}.Find(t.Context())
			if err != nil || got != filepath.Join(dir, test.want) || waited != test.waited {
				t.Errorf("got %q, %v after waiting for %q, want %s after %q", got, err, waited, test.want, test.waited)
			}
		})
	}
}

func TestFindNoRuntime(t *testing.T) {
	programs(t, nil)
	if _, err := (Finder{}).Find(t.Context()); !errors.As(err, new(*AbsentError)) {
		t.Errorf("got %v, want AbsentError", err)
	}
	programs(t, map[string]string{"docker": dockerOfService, "podman": brokenPodman})
	_, err := Finder{Patience: time.Millisecond, interval: time.Millisecond}.Find(t.Context())
	const want = "docker does not work: Cannot connect to the Docker daemon; podman does not work: no subuid ranges, 1ms after it was started"
	if !errors.As(err, new(*DownError)) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFindRuntimeEnds: a task that is stopped waits for no runtime.
func TestFindRuntimeEnds(t *testing.T) {
	programs(t, map[string]string{"docker": dockerOfService})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	_, err := Finder{Waiting: func(string) { cancel(stopped) }}.Find(ctx)
	if !errors.Is(err, stopped) {
		t.Errorf("got %v, want the cause of the end", err)
	}
}

func TestRejectedPullNamesTheLogin(t *testing.T) {
	for output, want := range map[string]bool{
		"Error response from daemon: Head https://ghcr.io/v2/a/b/manifests/1: denied":          true,
		"unauthorized: authentication required":                                                true,
		"manifest for typo not found: manifest unknown":                                        false,
		"dial tcp: lookup registry: no such host":                                              false,
		"pull access denied for acme/x, repository does not exist or may require docker login": true,
	} {
		if got := isRejected(strings.ToUpper(output)); got != want {
			t.Errorf("%s: rejected is %v, want %v", output, got, want)
		}
	}
}
