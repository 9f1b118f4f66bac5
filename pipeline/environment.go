package pipeline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/github"
	"github.com/fray-ml/fray/forge/gitlab"
	"github.com/fray-ml/fray/review"
)

// Environment is where a job runs, and what for.
type Environment struct {
	Forge      forge.Kind // "": no forge is known
	API        string     // base URL
	Repository string     // "owner/name"; of GitLab the project's number
	Token      string     // "": there is none
	Author     string     // with whose login the token writes; "": it is asked for
	Pull       int        // number of the pull request; 0: there is none, or it is not known
	Fork       Origin
	Run        review.Run
	Root       string // of the repository's files; "": the current directory
	// Summary and Outputs are files that the runner reads, "" for none; Dotenv has outputs as GitLab
	// reads them.
	Summary, Outputs, Dotenv string
	// Commands says that the runner acts on lines of the log that begin with "::".
	Commands bool
}

// Origin is a closed set of where the commits of a job come from.
type Origin string

// The origins.
const (
	OriginHere    Origin = "here" // this repository
	OriginFork    Origin = "fork"
	OriginUnknown Origin = "unknown"
)

// Detect reads the environment of a job of GitHub Actions or GitLab CI; without either it
// is that of a terminal. It makes no calls.
func Detect(getenv func(string) string, readFile func(string) ([]byte, error)) (Environment, error) {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return detectGitHub(getenv, readFile)
	case getenv("GITLAB_CI") == "true":
		return detectGitLab(getenv)
	}
	return Environment{Fork: OriginHere}, nil
}

// event is the part of a GitHub event that is used.
type event struct {
	PullRequest *struct {
		Number int `json:"number"`
		Head   struct {
			SHA  string     `json:"sha"`
			Repo repository `json:"repo"`
		} `json:"head"`
		Base struct {
			Repo repository `json:"repo"`
		} `json:"base"`
	} `json:"pull_request"`
	Issue *struct {
		Number      int             `json:"number"`
		PullRequest json.RawMessage `json:"pull_request"`
	} `json:"issue"`
	WorkflowRun *struct {
		HeadRepository repository `json:"head_repository"`
		HeadSHA        string     `json:"head_sha"`
	} `json:"workflow_run"`
}

type repository struct {
	FullName string `json:"full_name"`
}

func detectGitHub(getenv func(string) string, readFile func(string) ([]byte, error)) (Environment, error) {
	e := Environment{
		Forge: forge.GitHub, API: cmp.Or(getenv("GITHUB_API_URL"), github.DefaultAPI), Repository: getenv("GITHUB_REPOSITORY"), Token: getenv("GITHUB_TOKEN"),
		Root: getenv("GITHUB_WORKSPACE"), Summary: getenv("GITHUB_STEP_SUMMARY"), Outputs: getenv("GITHUB_OUTPUT"), Commands: true, Fork: OriginHere,
		Run: review.Run{Commit: getenv("GITHUB_SHA")},
	}
	var err error
	if e.Run.ID, e.Run.Attempt, err = order(getenv, "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"); err != nil {
		return e, err
	}
	if server := getenv("GITHUB_SERVER_URL"); server != "" && e.Run.ID != 0 {
		e.Run.URL = fmt.Sprintf("%s/%s/actions/runs/%d", server, e.Repository, e.Run.ID)
	}
	path := getenv("GITHUB_EVENT_PATH")
	if path == "" {
		return e, nil
	}
	data, err := readFile(path)
	if err != nil {
		return e, fmt.Errorf("read the event of GITHUB_EVENT_PATH: %w", err)
	}
	var happened event
	if err := json.Unmarshal(data, &happened); err != nil {
		return e, fmt.Errorf("read the event of GITHUB_EVENT_PATH: %w", err)
	}
	e.about(&happened)
	return e, nil
}

// about takes in what an event is about.
func (e *Environment) about(happened *event) {
	switch {
	case happened.PullRequest != nil:
		pull := happened.PullRequest
		e.Pull, e.Run.Commit = pull.Number, cmp.Or(pull.Head.SHA, e.Run.Commit)
		// The repository of a head is absent once that fork has been deleted.
		if pull.Head.Repo.FullName == "" || pull.Head.Repo.FullName != pull.Base.Repo.FullName {
			e.Fork = OriginFork
		}
	case happened.Issue != nil && len(happened.Issue.PullRequest) > 0:
		e.Pull, e.Fork, e.Run.Commit = happened.Issue.Number, OriginUnknown, ""
	case happened.WorkflowRun != nil:
		e.Run.Commit = cmp.Or(happened.WorkflowRun.HeadSHA, e.Run.Commit)
		if happened.WorkflowRun.HeadRepository.FullName != e.Repository {
			e.Fork = OriginFork
		}
	}
}

func detectGitLab(getenv func(string) string) (Environment, error) {
	e := Environment{
		Forge: forge.GitLab, API: cmp.Or(getenv("CI_API_V4_URL"), gitlab.DefaultAPI), Repository: getenv("CI_PROJECT_ID"), Token: getenv("GITLAB_TOKEN"),
		Root: getenv("CI_PROJECT_DIR"), Fork: OriginHere,
		Run: review.Run{Commit: cmp.Or(getenv("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"), getenv("CI_COMMIT_SHA")), URL: getenv("CI_JOB_URL")},
	}
	var err error
	if e.Run.ID, e.Run.Attempt, err = order(getenv, "CI_PIPELINE_ID", "CI_JOB_ID"); err != nil {
		return e, err
	}
	if number := getenv("CI_MERGE_REQUEST_IID"); number != "" {
		if e.Pull, err = strconv.Atoi(number); err != nil {
			return e, fmt.Errorf("CI_MERGE_REQUEST_IID=%q: want a number", number)
		}
		if getenv("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != getenv("CI_MERGE_REQUEST_PROJECT_ID") {
			e.Fork = OriginFork
		}
	}
	return e, nil
}

// order reads the numbers that order runs.
func order(getenv func(string) string, id, attempt string) (run, again int64, err error) {
	for _, number := range []struct {
		name string
		to   *int64
	}{{id, &run}, {attempt, &again}} {
		text := getenv(number.name)
		if text == "" {
			continue
		}
		if *number.to, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, 0, fmt.Errorf("%s=%q: want a number", number.name, text)
		}
	}
	return run, again, nil
}

// Without is the environment of a job that may use no secret.
func (e Environment) withoutSecrets() Environment {
	e.Token = ""
	return e
}

// Client is a forge, as far as jobs call it.
type Client interface {
	Comments
	Statuses
	Files
	Issues
	Approvals
}

// errNoForge reports that no forge is known or no token is there.
var errNoForge = errors.New("no forge is known: run in GitHub Actions or GitLab CI with a token, or name it with --forge, --repository and GITHUB_TOKEN or GITLAB_TOKEN")

// Connect returns a client of the forge of the environment. It calls nothing yet.
func (e Environment) Connect(version string) (Client, error) {
	switch e.Forge {
	case forge.GitHub:
		return github.New(github.Config{API: e.API, Repository: e.Repository, Token: e.Token, Author: e.Author, Version: version})
	case forge.GitLab:
		return gitlab.New(gitlab.Config{API: e.API, Project: e.Repository, Token: e.Token, Author: e.Author, Version: version})
	}
	return nil, errNoForge
}

// Masked is a text without the token, whatever brought it there.
func (e Environment) Masked(text string) string {
	if e.Token == "" {
		return text
	}
	return strings.ReplaceAll(text, e.Token, "***")
}

var (
	_ Client = (*github.Client)(nil)
	_ Client = (*gitlab.Client)(nil)
)
