package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/pipeline"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/terminal"
)

// ciFlags are what the environment of a job tells, by flags.
type ciFlags struct {
	forge, api, repository, author, commit string
	pull                                   int
	summary, outputs, dotenv               string
}

func ciCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ci",
		Short: "Review and apply plans in GitHub Actions, GitLab CI or another CI",
		Long: `Review and apply plans in jobs of CI (docs/guides/ci.md). The jobs of GitHub
Actions and GitLab CI are recognized by their variables; flags override what these
state, and serve other systems. The token is read from GITHUB_TOKEN or
GITLAB_TOKEN alone.`,
	}
	cmd.AddCommand(ciPlanCommand(a), ciApprovedCommand(a), ciApplyCommand(a), ciDriftCommand(a))
	return cmd
}

func (f *ciFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.forge, "forge", "", "the forge, \"github\" or \"gitlab\", unless the job tells")
	cmd.Flags().StringVar(&f.api, "api", "", "base `URL` of the forge's API")
	cmd.Flags().StringVar(&f.repository, "repository", "", "`REPOSITORY` on the forge: OWNER/NAME, of GitLab the project's number")
	cmd.Flags().StringVar(&f.author, "comment-author", "", "`LOGIN` with which the token writes, where it may not ask for it")
	cmd.Flags().StringVar(&f.commit, "commit", "", "the `COMMIT` that is checked out, of a pull request its head")
	cmd.Flags().IntVar(&f.pull, "pull", 0, "`NUMBER` of the pull request")
	cmd.Flags().StringVar(&f.summary, "summary-file", "", "add the summary to `FILE`")
	cmd.Flags().StringVar(&f.outputs, "output-file", "", "add the outputs to `FILE`, as GitHub reads them")
	cmd.Flags().StringVar(&f.dotenv, "dotenv-file", "", "write the outputs to `FILE`, as GitLab reads them: FRAY_CHANGES=true")
}

// environment is that of the job, with what flags override.
func (f *ciFlags) environment() (pipeline.Environment, error) {
	e, err := pipeline.Detect(os.Getenv, os.ReadFile)
	if err != nil {
		return e, err
	}
	if f.forge != "" && f.forge != string(e.Forge) {
		e.Forge, e.API = forge.Kind(f.forge), ""
		e.Token = os.Getenv(strings.ToUpper(f.forge) + "_TOKEN")
	}
	if e.Forge != "" && e.Forge != forge.GitHub && e.Forge != forge.GitLab {
		return e, fmt.Errorf("--forge=%s: want %q or %q", f.forge, forge.GitHub, forge.GitLab)
	}
	if f.pull != 0 && f.pull != e.Pull {
		e.Pull, e.Fork = f.pull, pipeline.OriginUnknown
	}
	e.API, e.Repository, e.Author = cmp.Or(f.api, e.API), cmp.Or(f.repository, e.Repository), f.author
	e.Run.Commit = cmp.Or(f.commit, e.Run.Commit)
	e.Summary, e.Outputs, e.Dotenv = cmp.Or(f.summary, e.Summary), cmp.Or(f.outputs, e.Outputs), f.dotenv
	return e, nil
}

func registerComment(mode *string, cmd *cobra.Command) {
	cmd.Flags().StringVar(mode, "comment", string(pipeline.CommentChanges), "comment on the pull request \"always\", once there are \"changes\", or \"never\"")
}

// commentMode checks a mode that was given as a flag.
func commentMode(mode string) (pipeline.CommentMode, error) {
	switch m := pipeline.CommentMode(mode); m {
	case pipeline.CommentAlways, pipeline.CommentChanges, pipeline.CommentNever:
		return m, nil
	}
	return "", fmt.Errorf("--comment=%s: want always, changes or never", mode)
}

func ciPlanCommand(a *terminal.Terminal) *cobra.Command {
	var flags ciFlags
	var comment string
	p := &pipeline.Planner{Terminal: a}
	cmd := &cobra.Command{
		Use:   "plan [DIR | FILE...]",
		Short: "Check the files, plan, and show both to who reviews a pull request",
		Long: `Check the style of the files, validate and plan, and write the result as a comment
of the pull request, as the job's summary and outputs, and as annotations. There is
one comment for each directory and workspace, which later runs edit. A run on
a commit that is not the head any more writes none.

For a pull request of a fork only the files are checked: no token, variable of
the environment or stack is used. Changes are no error; errors in the files,
blocked changes and policies that deny are.

Outputs: outcome ("unchanged", "changes", "denied", "failed" or "validated"), exitcode
(0, 2 with changes, 1 on errors), changes ("true" or "false"), create, update, restart,
replace, delete, cost_low, cost_high (dollars an hour after the plan), and of a saved
plan its file plan, plan_sha256, and artifact, a name that is unique in the repository.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Comment, err = commentMode(comment); err != nil {
				return err
			}
			if p.Environment, err = flags.environment(); err != nil {
				return err
			}
			p.Paths = args
			return p.Run(cmd.Context())
		},
	}
	register.Config(&p.Options, cmd)
	flags.register(cmd)
	registerComment(&comment, cmd)
	cmd.Flags().StringVarP(&p.Files.Plan, "out", "o", "", "save a plan that has changes to `FILE` for fray ci apply FILE")
	cmd.Flags().BoolVar(&p.Files.Unsealed, "unsealed", false, "save the plan also where the state is not encrypted, and so the plan is not")
	cmd.Flags().StringVar(&p.Files.Comment, "comment-file", "", "write the comment to `FILE`")
	cmd.Flags().StringVar(&p.Files.Quality, "code-quality-file", "", "write problems to `FILE`, as GitLab shows them beside the files")
	cmd.Flags().BoolVar(&p.Format, "fmt", true, "files must be as fray fmt writes them")
	cmd.Flags().BoolVar(&p.Status, "status", false, "set a status of the commit, too")
	return cmd
}

func ciApprovedCommand(a *terminal.Terminal) *cobra.Command {
	var flags ciFlags
	p := &pipeline.Approver{Terminal: a}
	cmd := &cobra.Command{
		Use:   "approved [DIR | FILE...]",
		Short: "Find the plan that was reviewed in the pull request of a commit",
		Long: `Find the plan that fray ci plan made for the head of the pull request which this
commit merged, and check that it may be applied: the pull request is merged, and
approved by as many people as --approvals asks for. With --approvals, a commit that is
the head of an open pull request may be applied, too.

Outputs: pull, changes ("false": there is nothing to apply), run (that has the plan as an
artifact), artifact, plan_sha256 and approved_by.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Environment, err = flags.environment(); err != nil {
				return err
			}
			p.Paths = args
			return p.Run(cmd.Context())
		},
	}
	register.Place(&p.Options, cmd)
	flags.register(cmd)
	cmd.Flags().IntVar(&p.Needed, "approvals", 0, "at least `N` people must have approved the head of the pull request")
	return cmd
}

func ciApplyCommand(a *terminal.Terminal) *cobra.Command {
	var flags ciFlags
	var comment string
	options := rollout.Options{Wait: rollout.WaitReady, AutoApprove: true}
	p := &pipeline.Applier{Terminal: a, Options: &options}
	cmd := &cobra.Command{
		Use:   "apply PLANFILE",
		Short: "Apply a plan that was reviewed, and report how it ended",
		Long: `Apply a plan that fray ci plan --out saved, and no other: it is rejected if the files
or the state are not as they were, with what changed and who changed it last. With
--sha256 the file must be the one that was reviewed.

Outputs: outcome ("complete", "pending", "stale", "locked", "another plan" or "failed") and
exitcode, which is that of fray apply.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Comment, err = commentMode(comment); err != nil {
				return err
			}
			if err = options.Validate(); err != nil {
				return err
			}
			if p.Environment, err = flags.environment(); err != nil {
				return err
			}
			options.Changes, p.Plan = true, args[0]
			return p.Run(cmd.Context())
		},
	}
	flags.register(cmd)
	registerComment(&comment, cmd)
	cmd.Flags().StringVar(&p.Digest, "sha256", "", "apply only the file with this `SUM`, an output of fray ci plan and fray ci approved")
	cmd.Flags().IntVar(&options.Parallelism, "parallelism", 32, "at most `N` operations at once")
	cmd.Flags().DurationVar(&options.Timeout, "timeout", 10*time.Minute, "after this `TIME` leave what still waits as pending and exit with 3; 0 waits for ever")
	cmd.Flags().DurationVar(&options.LeaseTimeout, "lease-timeout", 0, "how long to wait for another run that is changing the stack")
	cmd.Flags().StringVar(&options.Wait, "wait", rollout.WaitReady, "`UNTIL` everything is \"ready\" (running and healthy, or ended), or all jobs are \"complete\"")
	return cmd
}

func ciDriftCommand(a *terminal.Terminal) *cobra.Command {
	var flags ciFlags
	p := &pipeline.Drifter{Terminal: a}
	cmd := &cobra.Command{
		Use:   "drift [DIR | FILE...]",
		Short: "Report what differs from the state, in an issue",
		Long: `Compare what is observed with what the state records, as fray plan --refresh-only
does, and report it: an issue for each directory and workspace is opened when there is
drift, edited while there is, and closed when there is none. Drift is no error.

Outputs: drift ("true" or "false"), differences (their number) and exitcode (0, 2 with drift,
1 on errors).`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Environment, err = flags.environment(); err != nil {
				return err
			}
			p.Paths = args
			return p.Run(cmd.Context())
		},
	}
	register.Config(&p.Options, cmd)
	flags.register(cmd)
	cmd.Flags().BoolVar(&p.Issue, "issue", true, "keep an issue about it")
	return cmd
}
