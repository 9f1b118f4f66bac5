package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/state/store"
)

// The step that installs fray takes the program of a release whose sum is right, and no other.
func TestActionInstallsByHash(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the platform in the addresses is Linux")
	}
	program := []byte("#!/bin/sh\necho \"ran $*\"\n")
	sum := sha256.Sum256(program)
	right := hex.EncodeToString(sum[:])
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v0.1.0/fray_0.1.0_linux_"+runtime.GOARCH {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(program)
	}))
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	mustWrite(t, authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, c := range map[string]struct {
		version, sum string
		want         string // of the log
		code         int
	}{
		"right":      {"0.1.0", right, "ran ci plan --out=", 0},
		"other sum":  {"0.1.0", strings.Repeat("0", 64), "is " + right + ", and not that of the input sha256", 1},
		"no sum":     {"0.1.0", "", "Set version to a release such as 0.1.0", 1},
		"no version": {"v0.1.0/../../evil", right, "Set version to a release such as 0.1.0", 1},
		"not there":  {"0.2.0", right, "404", 22},
	} {
		t.Run(name, func(t *testing.T) {
			r := &actionRunner{dir: t.TempDir(), temp: t.TempDir(), github: map[string]string{"token": "", "run_id": "1"}, env: map[string]string{"PATH": os.Getenv("PATH"), "CURL_CA_BUNDLE": authority}}
			got := r.run(t, map[string]string{"version": c.version, "sha256": c.sum, "releases": server.URL})
			if got.code != c.code || !strings.Contains(got.log, c.want) {
				t.Errorf("exit code %d, want %d, log:\n%s", got.code, c.code, got.log)
			}
			if _, err := os.Stat(filepath.Join(r.temp, "fray-bin", "fray")); (err == nil) != (c.code == 0) {
				t.Errorf("the program: %v", err)
			}
		})
	}
}

// A drift job opens an issue, edits it while there is drift, and closes it when there is none.
func TestActionKeepsAnIssueAboutDrift(t *testing.T) {
	r := newCIRepository(t)
	r.event(t, 20, nil, "cccc3333")
	planned := r.action(t, nil)
	wantOutputs(t, planned, map[string]string{"changes": "true"})
	wantOutputs(t, r.action(t, map[string]string{"command": "apply", "run": "20", "artifact": planned.outputs["artifact"], "plan_sha256": planned.outputs["plan_sha256"]}),
		map[string]string{"outcome": "complete"})
	r.event(t, 21, nil, "cccc3333")
	wantOutputs(t, r.action(t, map[string]string{"command": "drift"}), map[string]string{"drift": "false", "exitcode": "0"})
	if got := r.forge.Issues(); len(got) != 0 {
		t.Fatalf("got %+v", got)
	}
	endProcesses(filepath.Dir(r.dir)) // the host of the job is gone
	for run := range 2 {
		r.event(t, 22+run, nil, "cccc3333")
		wantOutputs(t, r.action(t, map[string]string{"command": "drift"}), map[string]string{"drift": "true", "exitcode": "2"})
	}
	open := r.forge.Issues()
	if len(open) != 1 || open[0].Closed || open[0].Title != "fray: drift in stacks/train" || !strings.Contains(open[0].Body, "`job.one`") {
		t.Fatalf("got %+v", open)
	}
	if _, stderr, code := r.fray(t, "apply", "--auto-approve", "stacks/train"); code != 0 {
		t.Fatal(stderr)
	}
	r.event(t, 24, nil, "cccc3333")
	wantOutputs(t, r.action(t, map[string]string{"command": "drift"}), map[string]string{"drift": "false"})
	if got := r.forge.Issues(); len(got) != 1 || !got[0].Closed {
		t.Errorf("got %+v", got)
	}
}

// fray runs fray as a person at a terminal.
func (r *ciRepository) fray(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	identity := filepath.Join(r.temp, "identity-of-alice")
	mustWrite(t, identity, []byte(r.identity+"\n"))
	cmd := exec.CommandContext(t.Context(), fray, args...)
	cmd.Dir, cmd.Env = r.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(r.dir), "XDG_CACHE_HOME=" + r.env["XDG_CACHE_HOME"], "FRAY_AGE_IDENTITY=" + identity, "USER=alice"}
	got, err := endingOf(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return got.stdout, got.stderr, got.code
}

// An apply that finds the stack changed by another run says who that is, and waits as long as asked
// (check 20).
func TestActionFindsTheStackLocked(t *testing.T) {
	r := newCIRepository(t)
	r.event(t, 30, nil, "dddd4444")
	planned := r.action(t, nil)
	inputs := map[string]string{"command": "apply", "run": "30", "artifact": planned.outputs["artifact"], "plan_sha256": planned.outputs["plan_sha256"]}
	wantOutputs(t, r.action(t, inputs), map[string]string{"outcome": "complete"})
	r.job(t, "run two", "2000")
	next := r.action(t, nil)
	inputs["artifact"], inputs["plan_sha256"] = next.outputs["artifact"], next.outputs["plan_sha256"]
	// Another run holds the lease: it is stopped in the middle of its apply.
	release := r.holdLease(t)
	locked := r.action(t, inputs)
	wantOutputs(t, locked, map[string]string{"outcome": "locked", "exitcode": "1"})
	for _, want := range []string{"another run is changing this stack", "has been changing this stack since", "hubot@"} {
		if !strings.Contains(locked.summary, want) {
			t.Errorf("no %q in\n%s", want, locked.summary)
		}
	}
	noted := r.action(t, nil)
	if !strings.Contains(noted.summary, "is changing this stack now") {
		t.Errorf("got\n%s", noted.summary)
	}
	release()
	inputs["lease-timeout"] = "5m"
	if got := r.action(t, inputs); got.outputs["outcome"] == "locked" {
		t.Errorf("got\n%s", got.log)
	}
}

// gitlabJob is a job of ci/gitlab/fray.gitlab-ci.yml.
type gitlabJob struct {
	Extends      string
	BeforeScript []string `yaml:"before_script"`
	Script       []string
	Artifacts    struct {
		Reports map[string]string
	}
}

func readTemplate(t *testing.T) (map[string]gitlabJob, map[string]string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "ci", "gitlab", "fray.gitlab-ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(data, &nodes); err != nil {
		t.Fatal(err)
	}
	jobs, variables := map[string]gitlabJob{}, map[string]string{}
	for name, node := range nodes {
		if name == "variables" {
			err = node.Decode(&variables)
		} else {
			var job gitlabJob
			err = node.Decode(&job)
			jobs[name] = job
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return jobs, variables
}

// template runs a job of the template as a runner of GitLab does: its lines in one shell.
func (r *ciRepository) template(t *testing.T, name string, more map[string]string) (log string, code int) {
	t.Helper()
	jobs, variables := readTemplate(t)
	job := jobs[name]
	lines := append(jobs[job.Extends].BeforeScript, job.Script...)
	if len(lines) < 2 {
		t.Fatalf("job %q has %d lines", name, len(lines))
	}
	identity := filepath.Join(r.temp, "identity") // a variable of type file
	mustWrite(t, identity, []byte(r.identity+"\n"))
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", strings.Join(lines, "\n"))
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(r.dir), "XDG_CACHE_HOME=" + r.env["XDG_CACHE_HOME"], "NO_COLOR=1", "USER=runner", "FRAY_AGE_IDENTITY=" + identity,
		"GITLAB_CI=true", "CI_API_V4_URL=" + r.env["GITHUB_API_URL"] + "/api/v4", "CI_PROJECT_ID=42", "CI_PROJECT_DIR=" + r.dir, "GITLAB_USER_LOGIN=octocat",
		"CI_JOB_URL=https://gitlab.example/-/jobs/5", "GITLAB_TOKEN=" + ciToken,
	}
	for _, set := range []map[string]string{variables, {"FRAY_CI_PROGRAM": fray, "FRAY_CI_DIRECTORY": "stacks/train"}, more} {
		for key, value := range set {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	got, err := endingOf(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if shown := got.stdout + got.stderr + fmt.Sprint(r.forge.Comments(7)); strings.Contains(shown, ciToken) || strings.Contains(shown, r.identity) {
		t.Errorf("a secret is shown:\n%s", shown)
	}
	return got.stdout + got.stderr, got.code
}

// The same under GitLab, by the lines of the template (check 22): planned in a merge request, applied on
// the default branch by the plan of that pipeline, drift.
func TestGitLabTemplate(t *testing.T) {
	r := newCIRepository(t)
	r.forge.SetPull(forge.Pull{Number: 7, Head: "aaaa1111"})
	request := map[string]string{
		"CI_COMMIT_SHA": "aaaa1111", "CI_PIPELINE_ID": "51", "CI_JOB_ID": "501", "CI_MERGE_REQUEST_IID": "7",
		"CI_MERGE_REQUEST_PROJECT_ID": "42", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "42",
	}
	log, code := r.template(t, ".fray-plan", request)
	comments := r.forge.Comments(7)
	if code != 0 || len(comments) != 1 || !strings.Contains(comments[0].Body, "1 to create") || !strings.Contains(comments[0].Body, "https://gitlab.example/-/jobs/5") {
		t.Fatalf("exit code %d, %+v, log:\n%s", code, comments, log)
	}
	dotenv := r.dotenv(t)
	if dotenv["FRAY_CHANGES"] != "true" || dotenv["FRAY_CREATE"] != "1" || len(dotenv["FRAY_PLAN_SHA256"]) != 64 {
		t.Errorf("got %v", dotenv)
	}
	if written, err := os.ReadFile(filepath.Join(r.dir, "fray-comment.md")); err != nil || string(written) != comments[0].Body {
		t.Errorf("the file of the comment: %v\n%s", err, written)
	}

	push := map[string]string{"CI_COMMIT_SHA": "bbbb2222", "CI_PIPELINE_ID": "52", "CI_JOB_ID": "502"}
	if log, code = r.template(t, ".fray-plan", push); code != 0 {
		t.Fatalf("exit code %d, log:\n%s", code, log)
	}
	r.forge.SetPull(forge.Pull{Number: 7, Head: "aaaa1111", Merged: true, Merge: "bbbb2222"})
	maps.Copy(push, r.dotenv(t))
	if log, code = r.template(t, ".fray-apply", push); code != 0 || !strings.Contains(log, "Apply complete: 1 created") {
		t.Fatalf("exit code %d, log:\n%s", code, log)
	}
	if got := r.forge.Comments(7); len(got) != 2 || !strings.Contains(got[1].Body, "The plan was applied.") {
		t.Errorf("got %+v", got)
	}
	if log, code = r.template(t, ".fray-drift", push); code != 0 || r.dotenv(t)["FRAY_DRIFT"] != "false" {
		t.Errorf("exit code %d, log:\n%s", code, log)
	}

	// A mistake is in the report of code quality; a fork gets no comment.
	mustWrite(t, filepath.Join(r.dir, "stacks", "train", "two.hcl"), []byte("job \"two\" {\n  comand = [\"true\"]\n}\n"))
	request["CI_MERGE_REQUEST_SOURCE_PROJECT_ID"] = "43"
	calls := len(r.forge.Calls())
	if log, code = r.template(t, ".fray-plan", request); code != 1 || len(r.forge.Calls()) != calls {
		t.Errorf("exit code %d, log:\n%s", code, log)
	}
	quality, err := os.ReadFile(filepath.Join(r.dir, "fray-quality.json"))
	if err != nil || !strings.Contains(string(quality), `"path": "stacks/train/two.hcl"`) || !strings.Contains(string(quality), `"begin": 2`) {
		t.Errorf("%v\n%s", err, quality)
	}
}

// dotenv reads the outputs of the last job.
func (r *ciRepository) dotenv(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, "fray.env"))
	if err != nil {
		t.Fatal(err)
	}
	return outputsOf(t, string(data))
}

// holdLease has another run change the stack until release is called.
func (r *ciRepository) holdLease(t *testing.T) (release func()) {
	t.Helper()
	s, err := store.OpenDir(filepath.Join(r.dir, "stacks", "train", ".fray"))
	if err != nil {
		t.Fatal(err)
	}
	last, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	held, err := store.Acquire(t.Context(), s, store.LeaseConfig{User: "hubot", Command: "fray ci apply", MinEpoch: last.Epoch, TTL: patience})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
