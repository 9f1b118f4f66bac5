package pipeline

import (
	"errors"
	"strings"
	"testing"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/review"
)

// detected is the environment of variables and the event.
func detected(t *testing.T, variables map[string]string, event string) Environment {
	t.Helper()
	e, err := Detect(func(name string) string { return variables[name] }, func(string) ([]byte, error) { return []byte(event), nil })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func onGitHub() map[string]string {
	return map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/train", "GITHUB_TOKEN": token, "GITHUB_SHA": "merge", "GITHUB_RUN_ID": "42", "GITHUB_RUN_ATTEMPT": "2",
		"GITHUB_EVENT_PATH": "event.json", "GITHUB_SERVER_URL": "https://github.com",
	}
}

func TestDetectsGitHub(t *testing.T) {
	const pull = `{"pull_request":{"number":7,"head":{"sha":"head","repo":{"full_name":"HEAD"}},"base":{"repo":{"full_name":"acme/train"}}}}`
	for name, c := range map[string]struct {
		event  string
		pull   int
		commit string
		origin Origin
	}{
		"pull request":      {strings.Replace(pull, "HEAD", "acme/train", 1), 7, "head", OriginHere},
		"of a fork":         {strings.Replace(pull, "HEAD", "mallory/train", 1), 7, "head", OriginFork},
		"of a deleted fork": {strings.Replace(pull, `{"full_name":"HEAD"}`, "null", 1), 7, "head", OriginFork},
		"push":              {`{"ref":"refs/heads/main"}`, 0, "merge", OriginHere},
		"comment":           {`{"issue":{"number":7,"pull_request":{"url":"x"}}}`, 7, "", OriginUnknown},
		"issue":             {`{"issue":{"number":8}}`, 0, "merge", OriginHere},
		"run of a fork":     {`{"workflow_run":{"head_sha":"head","head_repository":{"full_name":"mallory/train"}}}`, 0, "head", OriginFork},
	} {
		e := detected(t, onGitHub(), c.event)
		if e.Forge != forge.GitHub || e.Pull != c.pull || e.Fork != c.origin || e.Run != (review.Run{Commit: c.commit, ID: 42, Attempt: 2, URL: "https://github.com/acme/train/actions/runs/42"}) {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}

func TestDetectsGitLab(t *testing.T) {
	variables := map[string]string{
		"GITLAB_CI": "true", "CI_PROJECT_ID": "42", "GITLAB_TOKEN": token, "CI_COMMIT_SHA": "merged-result", "CI_PIPELINE_ID": "5", "CI_JOB_ID": "6", "CI_MERGE_REQUEST_IID": "7",
		"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "head", "CI_MERGE_REQUEST_PROJECT_ID": "42", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "42",
	}
	if e := detected(t, variables, ""); e.Forge != forge.GitLab || e.Pull != 7 || e.Fork != OriginHere || e.Run.Commit != "head" || e.Run.ID != 5 || e.Run.Attempt != 6 {
		t.Errorf("got %+v", e)
	}
	variables["CI_MERGE_REQUEST_SOURCE_PROJECT_ID"] = "43"
	if e := detected(t, variables, ""); e.Fork != OriginFork {
		t.Errorf("got %+v", e)
	}
}

func TestDetectsMistakes(t *testing.T) {
	bad := onGitHub()
	bad["GITHUB_RUN_ID"] = "forty-two"
	for name, c := range map[string]struct {
		variables map[string]string
		event     string
		err       error
		want      string
	}{
		"no number":     {bad, "{}", nil, `GITHUB_RUN_ID="forty-two": want a number`},
		"no event":      {onGitHub(), "", errors.New("no such file"), "read the event of GITHUB_EVENT_PATH: no such file"},
		"damaged event": {onGitHub(), "{", nil, "read the event"},
	} {
		_, err := Detect(func(n string) string { return c.variables[n] }, func(string) ([]byte, error) { return []byte(c.event), c.err })
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
