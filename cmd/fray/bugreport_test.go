package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// planted are secrets of known shapes that no variable declares: they are in a job's name, its environment and command,
// in what it writes, in a file's name and in the files.
func planted() map[string]string {
	return map[string]string{
		"token of a job's name":    "gho_" + "N1a2m3e4N1a2m3e4N1a2",
		"token in the environment": "ghp_" + "E1n2v3E1n2v3E1n2v3E1n2v3",
		"password of a command":    "cheetah-of-a-command",
		"token in a log":           "eyJ" + "hbGciOiJIUzI1NiJ9.eyJsb2ciOiJ5ZXMifQ.c2lnbmF0dXJl",
		"key in a log":             "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
		"webhook in a log":         "T00000000/B00000000/XXXXlogXXXX",
		"Google key in a log":      "AIza" + "SyLogLogLogLogLogLogLogLogLogLogLogL",
		"value in a comment":       "comment-pass-word",
		"token in a file's name":   "xoxb-" + "998877665544-filename",
		"variable of this process": "operator-token-of-the-shell",
	}
}

const plants = `
# password = "comment-pass-word"
job "gho_N1a2m3e4N1a2m3e4N1a2" {
  command = ["sh", "-c", "echo told; sleep 1000", "--password", "cheetah-of-a-command"]
  environment {
    env = { CLONE = "https://ghp_E1n2v3E1n2v3E1n2v3E1n2v3@github.com/x" }
  }
}
job "prints" {
  command = ["sh", "-c", <<-EOT
    echo eyJhbGciOiJIUzI1NiJ9.eyJsb2ciOiJ5ZXMifQ.c2lnbmF0dXJl
    echo '-----BEGIN PRIVATE ''KEY-----'; K=MIIEvQIBADANBg; echo $${K}kqhkiG9w0BAQEFAASC; echo '-----END PRIVATE ''KEY-----'
    echo https://hooks.slack.com/services/T00000000/B00000000/XXXXlogXXXX
    echo AIzaSyLogLogLogLogLogLogLogLogLogLogLogL $SHELL_TOKEN
    echo told
    exit 1
  EOT
  ]
}
`

// TestBugReportHasNoSecrets: none is in the archive, byte by byte and within its members, nor in what is printed.
func TestBugReportHasNoSecrets(t *testing.T) {
	t.Parallel()
	s := newProofStack(t, nil)
	s.env = append(s.env, "FRAY_VAR_pw="+keptSecret, "SHELL_TOKEN=operator-token-of-the-shell")
	s.write(t, telltales+plants)
	named := filepath.Join(s.dir, "xoxb-"+"998877665544-filename.hcl")
	if err := os.WriteFile(named, []byte("locals {\n  api_key = \"comment-pass-word\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(t, nil, "apply", "--auto-approve"); err != nil {
		t.Fatal(err)
	}
	watch := s.command(t, nil, "watch", "--http", "127.0.0.1:0")
	var out strings.Builder
	watch.Stdout, watch.Stderr = &out, &out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = watch.Wait() // it is told to end
	}()
	t.Cleanup(func() {
		_ = watch.Process.Signal(syscall.SIGKILL) // it may have ended
		<-gone
	})
	st, err := s.store(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := within(proofPatience, func() error {
		got, err := s.run(t, nil, "logs", "job.prints")
		if err == nil && !strings.Contains(got.stdout, "told") {
			err = errors.New("job.prints has not told all")
		}
		return errors.Join(err, s.told(t, st))
	}); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "report.tar.gz")
	got, err := s.run(t, nil, "bug-report", "--yes", "--include-config", "--out", archive)
	if err != nil || got.code != 0 {
		t.Fatalf("%v, %v", got, err)
	}
	info, err := os.Stat(archive)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive has the mode %v, %v; want 0600", info.Mode(), err)
	}
	packed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{"what is printed": got.stdout + got.stderr, "the archive": string(packed)}
	members := unpacked(t, packed)
	maps.Copy(places, members)
	for place, text := range places {
		mustHide(t, place, place+"\n"+text)
		for name, secret := range planted() {
			if strings.Contains(place+"\n"+text, secret) {
				t.Errorf("%s has the %s", place, name)
			}
		}
	}
	for _, want := range []string{
		"manifest.json", "state.json", "events.jsonl", "status.txt", "plan.txt", "plan.json", "versions.json", "lease.json", "store/latency.txt", "store/objects.txt",
		"controller/goroutines.txt", "controller/metrics.txt", "controller/timings.txt", "configuration/fray.hcl", "logs/job.prints/attempt-1-task-0.log",
	} {
		if members["fray-bug-report/"+want] == "" {
			t.Errorf("the archive has no %s", want)
		}
	}
	if log := members["fray-bug-report/logs/job.prints/attempt-1-task-0.log"]; strings.Count(log, "(sensitive value)") < 4 || !strings.Contains(log, "told") {
		t.Errorf("the log of job.prints: %s", log)
	}
	if stacks := members["fray-bug-report/controller/goroutines.txt"]; !strings.Contains(stacks, "loop") {
		t.Errorf("the stacks of the controller: %.300s", stacks)
	}
	if err := watch.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-gone
}

// unpacked are the members of a report by their names.
func unpacked(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = string(data)
	}
}
