package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/terminal"
	"github.com/fray-ml/fray/watch"
)

func watchCommand(a *terminal.Terminal) *cobra.Command {
	var flags watch.Options
	var kind string
	cmd := &cobra.Command{
		Use:   "watch [DIR | FILE...]",
		Short: "Keep what was applied true until stopped",
		Long: `Keep what was applied true: tasks, hosts and slices that die come back within
their budgets. watch is also the stack's controller: programs launch jobs and find
each other through it, and it serves a web page and metrics.

It carries out what the last apply accepted, and reads no files, so that an edit
changes nothing before it is applied: a fray apply hands its plan over and follows.
With --config it follows a directory, or a branch or tag of a repository, instead,
and takes over what changes there; it reports to the repository's forge what became of
each commit, if it has a token (see docs/guides/notices.md). With --observe it changes nothing and only shows
what it finds.

Of several watches of one stack one leads; another one takes over within seconds of
its death, and what runs does not notice.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.Forge.Kind, flags.Forge.Version = forge.Kind(kind), release.Version()
			return watch.Run(cmd.Context(), a, args, flags)
		},
	}
	register.Config(&flags.Options, cmd)
	register.PolicyDirs(&flags.Policies, cmd)
	cmd.Flags().IntVar(&flags.Parallelism, "parallelism", 32, "at most `N` operations at once")
	cmd.Flags().BoolVar(&flags.Detached, "detached", false, "end when the accepted configuration declares no controller")
	_ = cmd.Flags().MarkHidden("detached")
	cmd.Flags().BoolVar(&flags.Page, "page", false, "serve the page at descriptor 3, to clients that have the recorded token")
	_ = cmd.Flags().MarkHidden("page")
	cmd.Flags().StringVar(&flags.Config, "config", "", "follow the files in a `DIR`, or in \"git URL@REF\", without an apply")
	cmd.Flags().StringVar(&kind, "forge", "", "report the status of followed commits to this `KIND` of forge: github or gitlab; by default as the repository's host says, where there is a token")
	cmd.Flags().StringVar(&flags.Forge.Repository, "forge-repository", "", "the repository as the forge names it, `OWNER/NAME`; by default as its URL has it")
	cmd.Flags().StringVar(&flags.Forge.API, "forge-api", "", "the base `URL` of the forge's API, of one that is not public")
	cmd.Flags().StringVar(&flags.Forge.TokenFile, "forge-token-file", "", "the `FILE` with the forge's token; by default FRAY_FORGE_TOKEN, GITHUB_TOKEN or GITLAB_TOKEN has it")
	cmd.Flags().BoolVar(&flags.Observe, "observe", false, "show what differs and change nothing")
	cmd.Flags().StringVar(&flags.API, "api", watch.ServeAuto, "serve the cluster API at `HOST:PORT`; auto: on this machine, or in its network if the state is in a bucket; off: not at all")
	cmd.Flags().StringVar(&flags.Advertise, "advertise", "", "the `HOST` by which others reach --api")
	cmd.Flags().StringVar(&flags.HTTP, "http", watch.HTTPDefault, "serve the web page and metrics at `HOST:PORT`; off: not at all")
	return cmd
}
