package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guideBlock matches a block of a guide: fenced, or lines that are indented by four.
var guideBlock = regexp.MustCompile("(?ms)^```[^\n]*\n.*?^```$|(?:^    [^\n]*\n)+")

// checkedBy are the tests that run or check the blocks of the guides: by guide and by
// how a block begins, the longest beginning counts.
func checkedBy() map[string]map[string]string {
	const (
		cloud    = "not run: Google Cloud's own program on a real machine"
		examples = "package examples"
		fragment = "not run: a fragment of a program, compiled by test_actor_guide.py"
		breaks   = "not run: two controllers that never end; the clusterproof tests kill leaders"
	)
	return map[string]map[string]string{
		"actors.md": {
			"```python": fragment, "```python\nfrom fray.cluster": "test_actor_guide.py", "```hcl": "TestActorsGuide",
			"```go": "not run: a fragment of a program", "```go\npackage main": "TestActorsGuide", "    fray apply": "not run as written: package examples does the same with examples/actors/counter.hcl", "    gcloud": cloud,
			"      trainer.step": "not run: a message of an error", "```toml": "not run: settings of mypy; test_typing.py runs it with them",
		},
		"ci.md": {"```yaml\n# ci/": "TestCIGuide; TestActionReviewsAndApplies and TestGitLabTemplate run the steps", "    fray ci plan": "TestCIGuide"},
		"cluster.md": {
			"    fray watch": "not run: it needs a repository, or serves without end; TestReadme starts a watch", "    pip install": "not run as written: TestWheel installs the wheel",
			"```python": "TestClusterGuide", "```hcl": "TestClusterGuide", "    fray run": "TestClusterGuide",
		},
		"cost.md":      {"    fray cost": "TestScript/cost", "```hcl": "TestScript/cost"},
		"debugging.md": {"    fray": "TestDebuggingGuide", "```go": "not run: a fragment of a program; TestProfileGo runs one like it"},
		"editors.md": {
			"    cd editors": "not run: it needs Node and VS Code", "```": "not run as written: settings of editors; test_lsp.py and TestScript/lsp speak the protocol",
		},
		"failures.md": {"```hcl": "TestFailuresGuide", "    ": "TestFailuresGuide", "    fray watch --http": breaks},
		"gcp.md": {
			"```hcl": "TestGCPGuideSnippets", "    gcloud auth": "TestGCPGuide, but for the login", "    fray emulate": "TestGCPGuide, on a free port",
			"    fray import": "not run as written: TestImportByHand imports a node of another name",
		},
		"gcp-hosts.md":     {"    gcloud": cloud, "    2 of 4 hosts": "not run: a message of a wait; TestHostsAreAskedWhy has its parts", "    host 0 reports": "not run: a message; bootdriver_test.go has its parts"},
		"inference.md":     {"    ": examples + ", with an endpoint for ENDPOINT"},
		"iris.md":          {"    FRAY_CLIENT_SPEC": "not run: it needs a cluster; tests/engines/programs", "```python": "test_engine_guides.py"},
		"modules.md":       {"```": "TestModulesGuide"},
		"nexrl-modules.md": {"```python": "test_rl_guides.py", "```python\n# FRAY_CLIENT_SPEC": "not run as written: it needs a cluster; test_rl_launching.py launches runs"},
		"nexrl.md":         {"    ": examples, "```\nmodule": "not run: what package examples' TestNexRL shows", "```\nval/": "not run: what package examples' TestNexRL shows", "```hcl": "rl/config: TestTheGuidesCallIsRight", "```python": "test_rl_guides.py"},
		"notices.md": {
			"```hcl": "TestNoticesGuide", "```python": "TestNoticesGuide", "```go": "TestNoticesGuide", "```json": "not run: what TestNoticesGuide's receivers get", "    fray notify": "TestScript/notices",
			"    fray plan": "TestScript/plan_refresh", "    fray watch": "not run: it needs a repository; TestScript/watch_git",
		},
		"policies.md": {
			"```": "TestPoliciesGuide", "```rego": "TestConftestGuide", "    fray policy input": "TestConftestGuide",
			"    fray apply": "not run as written: TestScript/policy overrides a policy", "    fray module": "not run as written: TestScript/get publishes into a directory",
			"    git worktree": "not run as written: TestScript/policy has a directory of policies",
		},
		"quickstart.md": {"    ": "TestQuickstartGuide"},
		"ray-capacity.md": {
			"```hcl": "not run: it needs nodes with TPUs; TestTrainingOnRay runs one like it",
			"    ":   "not run: it needs a cluster; TestTrainingOnRay",
		},
		"ray.md":        {"    pip install": "not run: it needs a cluster; tests/engines/programs runs programs so"},
		"ray-actors.md": {"```go": "not run as written: test_ray_actor_reach.py runs a program like it", "```python": "test_engine_guides.py", "```sh": "not run as written: test_ray_actor_reach.py runs the module"},
		"rehearsal.md":  {"```\nEnded after": "not run: a line of a report, which TestRehearsalJSONDoc's run has", "```console": "TestRehearsalGuide", "```hcl": "TestScenarioGuideSnippets"},
		"reviews.md":    {"```": "plan/markdown: TestTheGuidesExample", "    fray plan": "not run as written: TestScript/plan_markdown runs such commands"},
		"rl.md":         {"    ": examples},
		"schedules.md":  {"```hcl": "TestScript/schedule", "```console": "TestScript/schedule"},
		"scenario.md":   {"```hcl": "TestScenarioGuideSnippets"},
		"state.md":      {"```hcl": "TestStateGuideSnippets", "    ": "TestStateGuide", "    go run": "TestStateGuide, with an emulator that runs already: @latest needs the internet"},
		"testing.md":    {"```": "TestTestingGuide"},
		"training.md":   {"    ": examples},
		"README.md": {
			"```console install": "TestWheel", "```console": "TestReadme", "```hcl": "TestReadme", "```python": "test_readme.py",
			"    make": "not run: the targets of CI",
		},
	}
}

// Every block of the README and of every guide has a test that runs or checks it, or a reason here why
// none does; and what is listed is in the guides.
func TestGuideBlocks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range append(files, filepath.Join("..", "..", "README.md")) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		known := checkedBy()[filepath.Base(file)]
		used := map[string]bool{}
		for _, block := range guideBlock.FindAllString(string(data), -1) {
			longest, found := "", false
			for begin := range known {
				if strings.HasPrefix(block, begin) && len(begin) >= len(longest) {
					longest, found = begin, true
				}
			}
			if !found {
				t.Errorf("%s: no test is named for\n%s", file, block)
			}
			used[longest] = true
		}
		for begin := range known {
			if !used[begin] {
				t.Errorf("%s: no block begins with %q", file, begin)
			}
		}
	}
}
