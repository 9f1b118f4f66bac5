package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/forgetest"
	"github.com/fray-ml/fray/review"
)

const (
	ciToken = "ghs_0123456789ciSecret"
	ciBot   = "github-actions[bot]"
)

// ciRepository is a checkout with a stack, and the forge that it is on.
type ciRepository struct {
	*actionRunner
	forge    *forgetest.Forge
	identity string // that opens the state
	public   string
}

// newCIRepository has a stack in stacks/train, whose state is encrypted.
func newCIRepository(t *testing.T) *ciRepository {
	t.Helper()
	needsFray(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	t.Cleanup(func() { endProcesses(root) })
	f := forgetest.New(ciToken, ciBot)
	f.Unnamed()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	r := &ciRepository{
		forge: f, identity: identity.String(), public: identity.Recipient().String(),
		actionRunner: &actionRunner{dir: filepath.Join(root, "checkout"), temp: filepath.Join(root, "temp"), artifacts: map[string][]byte{}},
	}
	r.github = map[string]string{"token": ciToken, "run_id": "1"}
	r.env = map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": root, "XDG_CACHE_HOME": filepath.Join(root, "cache"), "USER": "runner", "NO_COLOR": "1",
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": forgetest.Owner + "/" + forgetest.Name, "GITHUB_API_URL": server.URL, "GITHUB_SERVER_URL": "https://github.com",
		"GITHUB_WORKSPACE": r.dir, "GITHUB_ACTOR": "octocat", "GITHUB_SHA": "5b3fdeadbeef",
	}
	if err := os.MkdirAll(r.temp, 0o755); err != nil {
		t.Fatal(err)
	}
	r.job(t, "run one", "1000")
	return r
}

// job writes the configuration of the stack.
func (r *ciRepository) job(t *testing.T, comment, seconds string) {
	t.Helper()
	mustWrite(t, filepath.Join(r.dir, "stacks", "train", "fray.hcl"), fmt.Appendf(nil, `fray {
  encryption {
    recipients = [%q]
  }
}

# %s
job "one" {
  command = ["sleep", %q]
}
`, r.public, comment, seconds))
}

// event has the next jobs run for a pull request, or for a push where it has none.
func (r *ciRepository) event(t *testing.T, run int, pull *forge.Pull, commit string) {
	t.Helper()
	r.github["run_id"] = fmt.Sprint(run)
	r.env["GITHUB_RUN_ID"], r.env["GITHUB_RUN_ATTEMPT"], r.env["GITHUB_SHA"] = fmt.Sprint(run), "1", commit
	event := map[string]any{"ref": "refs/heads/main"}
	if pull != nil {
		home := map[string]any{"full_name": forgetest.Owner + "/" + forgetest.Name}
		head := home
		if pull.Fork {
			head = map[string]any{"full_name": "mallory/train"}
		}
		event = map[string]any{"number": pull.Number, "pull_request": map[string]any{
			"number": pull.Number, "head": map[string]any{"sha": commit, "repo": head}, "base": map[string]any{"repo": home},
		}}
	}
	data, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.temp, "event.json")
	mustWrite(t, path, data)
	r.env["GITHUB_EVENT_PATH"] = path
}

// action runs the action on the stack.
func (r *ciRepository) action(t *testing.T, inputs map[string]string) ended {
	t.Helper()
	all := map[string]string{"program": fray, "directory": "stacks/train", "age-identity": r.identity}
	maps.Copy(all, inputs)
	got := r.run(t, all)
	if shown := got.log + got.summary + fmt.Sprint(got.outputs, r.forge.Comments(7)); strings.Contains(shown, ciToken) || strings.Contains(shown, r.identity) {
		t.Errorf("a secret is shown:\n%s", shown)
	}
	if _, err := os.Stat(filepath.Join(r.temp, "fray-identity")); err == nil {
		t.Error("the identity is left behind")
	}
	return got
}

func wantOutputs(t *testing.T, got ended, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got.outputs[name] != value {
			t.Errorf("output %s is %q, want %q", name, got.outputs[name], value)
		}
	}
	if t.Failed() {
		t.Fatalf("exit code %d, log:\n%s", got.code, got.log)
	}
}

// The whole way of a change by the steps of the action: planned in a pull request (checks 13, 17,
// 21), merged and applied by that very plan, planned again without changes (check 1), stale (15).
func TestActionReviewsAndApplies(t *testing.T) {
	r := newCIRepository(t)
	pull := &forge.Pull{Number: 7, Head: "aaaa1111"}
	r.forge.SetPull(*pull)
	r.event(t, 11, pull, "aaaa1111")
	planned := r.action(t, nil)
	wantOutputs(t, planned, map[string]string{
		"outcome": "changes", "exitcode": "2", "changes": "true", "create": "1", "update": "0", "restart": "0", "replace": "0", "delete": "0",
		"cost_low": "0.00", "cost_high": "0.00",
	})
	comments := r.forge.Comments(7)
	if planned.code != 0 || len(comments) != 1 {
		t.Fatalf("exit code %d, %d comments", planned.code, len(comments))
	}
	for _, text := range []string{comments[0].Body, planned.summary} {
		for _, want := range []string{"`stacks/train`", "1 to create", "`aaaa1111`", "actions/runs/11", planned.outputs["artifact"]} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	r.sealed(t, planned)

	// Once more for the same commit: the comment is edited.
	r.event(t, 12, pull, "aaaa1111")
	planned = r.action(t, nil)
	if got := r.forge.Comments(7); len(got) != 1 || got[0].ID != comments[0].ID || !strings.Contains(got[0].Body, "actions/runs/12") {
		t.Fatalf("got %+v", got)
	}

	// Not merged: nothing may be applied. Merged: the plan of the last run may.
	r.event(t, 13, nil, "bbbb2222")
	if got := r.action(t, map[string]string{"command": "approved"}); got.code != 1 || !strings.Contains(got.log, "commit bbbb2222 is of no pull request") {
		t.Fatalf("exit code %d:\n%s", got.code, got.log)
	}
	r.forge.SetPull(forge.Pull{Number: 7, Head: "aaaa1111", Merged: true, Merge: "bbbb2222"})
	approved := r.action(t, map[string]string{"command": "approved"})
	wantOutputs(t, approved, map[string]string{"run": "12", "pull": "7", "changes": "true", "artifact": planned.outputs["artifact"], "plan_sha256": planned.outputs["plan_sha256"]})
	apply := map[string]string{"command": "apply", "run": "12", "artifact": approved.outputs["artifact"], "plan_sha256": approved.outputs["plan_sha256"]}

	other := map[string]string{"command": "apply", "run": "12", "artifact": approved.outputs["artifact"], "plan_sha256": strings.Repeat("0", 64)}
	wantOutputs(t, r.action(t, other), map[string]string{"outcome": "another plan", "exitcode": "1"})

	applied := r.action(t, apply)
	wantOutputs(t, applied, map[string]string{"outcome": "complete", "exitcode": "0"})
	if got := r.forge.Comments(7); len(got) != 2 || !strings.Contains(got[1].Body, "The plan was applied.") || !strings.Contains(applied.summary, "The plan was applied.") {
		t.Fatalf("got %+v", got)
	}

	// The same plan once more is stale, and the message says who changed what.
	stale := r.action(t, apply)
	wantOutputs(t, stale, map[string]string{"outcome": "stale", "exitcode": "1"})
	for _, want := range []string{"is stale", "job.one was created", "octocat", "fray ci apply in https://github.com/acme/train/actions/runs/13"} {
		if !strings.Contains(stale.log, want) || !strings.Contains(stale.summary, want) {
			t.Errorf("no %q in\n%s\n%s", want, stale.log, stale.summary)
		}
	}

	// No changes: one line, exit code 0, the comment is edited and none is added.
	r.forge.SetPull(*pull)
	r.event(t, 14, pull, "aaaa1111")
	unchanged := r.action(t, nil)
	wantOutputs(t, unchanged, map[string]string{"outcome": "unchanged", "exitcode": "0", "changes": "false", "create": "0", "plan": ""})
	got := r.forge.Comments(7)
	if _, text, _ := strings.Cut(strings.TrimRight(got[0].Body, "\n"), "\n"); len(got) != 2 || strings.Contains(text, "\n") || !strings.Contains(text, "No changes") {
		t.Errorf("got %d comments, the first is\n%s", len(got), got[0].Body)
	}
}

// sealed holds that the artifact is useless without the key (check 21).
func (r *ciRepository) sealed(t *testing.T, planned ended) {
	t.Helper()
	data := r.artifacts[r.github["run_id"]+"/"+planned.outputs["artifact"]]
	if len(data) == 0 || strings.Contains(string(data), "sleep") || strings.Contains(string(data), "job.one") {
		t.Fatalf("the artifact shows its plan:\n%s", data)
	}
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	got := r.run(t, map[string]string{"program": fray, "command": "apply", "run": r.github["run_id"], "artifact": planned.outputs["artifact"], "plan_sha256": planned.outputs["plan_sha256"], "age-identity": stranger.String()})
	if got.code != 1 || !strings.Contains(got.log, "cannot be opened here") || strings.Contains(got.log, "sleep") {
		t.Fatalf("exit code %d:\n%s", got.code, got.log)
	}
}

// A pull request of a fork is only validated: no call of the forge, no stack, no variable of the
// environment, no secret; and that is said (check 16).
func TestActionOfAForkOnlyValidates(t *testing.T) {
	r := newCIRepository(t)
	pull := &forge.Pull{Number: 7, Head: "aaaa1111", Fork: true}
	r.forge.SetPull(*pull)
	r.event(t, 11, pull, "aaaa1111")
	r.env["FRAY_VAR_secret"] = "value-of-a-secret"
	mustWrite(t, filepath.Join(r.dir, "stacks", "train", "leak.hcl"), []byte("variable \"secret\" {\n  type = string\n\n  validation {\n    condition     = var.secret == \"\"\n    error_message = \"It is ${var.secret}.\"\n  }\n}\n"))
	got := r.action(t, nil)
	wantOutputs(t, got, map[string]string{"outcome": "validated", "exitcode": "0", "changes": "", "plan": "", "create": ""})
	if calls := r.forge.Calls(); got.code != 0 || len(calls) != 0 {
		t.Errorf("exit code %d, called %v", got.code, calls)
	}
	if !strings.Contains(got.summary, "The plan is skipped") || !strings.Contains(got.summary, "fork") || strings.Contains(got.log+got.summary, "value-of-a-secret") {
		t.Errorf("got\n%s\n%s", got.summary, got.log)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "stacks", "train", ".fray")); err == nil {
		t.Error("the stack was made")
	}
	// Mistakes are reported all the same.
	mustWrite(t, filepath.Join(r.dir, "stacks", "train", "leak.hcl"), []byte("job \"two\" {\n  comand = [\"true\"]\n}\n"))
	got = r.action(t, nil)
	if got.code != 1 || got.outputs["outcome"] != "failed" || !strings.Contains(got.log, "::error file=stacks/train/leak.hcl,line=2,") {
		t.Errorf("exit code %d, log:\n%s", got.code, got.log)
	}
}

// Errors are annotations on the lines of the diff before others (check 12), and values that look like
// commands of the runner are none.
func TestActionAnnotates(t *testing.T) {
	r := newCIRepository(t)
	pull := &forge.Pull{Number: 7, Head: "aaaa1111"}
	r.forge.SetPull(*pull)
	r.event(t, 11, pull, "aaaa1111")
	broken := "job \"two\" {\n  command = [\"true\"]\n  first   = 1\n  second  = <<EOT\n::set-output name=changes::false\n::error::spoofed\nEOT\n}\n"
	mustWrite(t, filepath.Join(r.dir, "stacks", "train", "two, three%.hcl"), []byte(broken))
	r.forge.SetFiles(7, forgetest.File{Path: "stacks/train/two, three%.hcl", Status: "added", Patch: "@@ -0,0 +4,4 @@"})
	got := r.action(t, nil)
	if got.code != 1 || got.outputs["outcome"] != "failed" || got.outputs["exitcode"] != "1" {
		t.Fatalf("exit code %d, log:\n%s", got.code, got.log)
	}
	active := activeCommands(got.log)
	want := []string{"::error file=stacks/train/two%2C three%25.hcl,line=4,", "::error file=stacks/train/two%2C three%25.hcl,line=3,"}
	if len(active) != 2 || !strings.HasPrefix(active[0], want[0]) || !strings.HasPrefix(active[1], want[1]) {
		t.Errorf("commands %q, want beginnings %q", active, want)
	}
	comment := r.forge.Comments(7)
	if len(comment) != 1 || !strings.Contains(comment[0].Body, "two, three%.hcl:3") {
		t.Errorf("got %+v", comment)
	}
	if m, ok := review.ParseMarker(comment[0].Body); !ok || m.Plan != "" || m.Changes {
		t.Errorf("the marker is %+v", m)
	}
}

// activeCommands are the lines of a log that a runner acts on.
func activeCommands(log string) []string {
	var active []string
	resume := ""
	for line := range strings.SplitSeq(log, "\n") {
		line = strings.TrimSpace(line)
		word, stops := strings.CutPrefix(line, "::stop-commands::")
		switch {
		case resume != "":
			if line == "::"+resume+"::" {
				resume = ""
			}
		case stops:
			resume = word
		case strings.HasPrefix(line, "::") || strings.Contains(line, "##["):
			active = append(active, line)
		}
	}
	return active
}
