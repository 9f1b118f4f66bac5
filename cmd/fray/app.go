package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/stateverbs"
	"github.com/fray-ml/fray/commandline"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/terminal"
)

const longHelp = `fray runs machine-learning workloads that one HCL file describes: it plans what
will change, applies it to this machine or to TPU slices on Google Cloud, and keeps it
true while hosts come and go.

First steps:

  fray init            write a first fray.hcl to start from
  fray plan            show what would be done
  fray apply           do it
  fray status          see what runs, and why something does not
  fray logs -f ADDR    follow what a job prints
  fray watch           repair whatever breaks, until stopped
  fray destroy         take everything down again

ADDR is an address such as job.train, job.shard[3] or job_group.rl.job.rollout.`

func newRoot(a *terminal.Terminal) *cobra.Command {
	root := &cobra.Command{
		Use:           "fray",
		Short:         "Declare, plan, apply and keep machine-learning workloads",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       release.Version(),
	}
	root.SetVersionTemplate("fray {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.NoColor, "no-color", false, "print without colours (also: NO_COLOR)")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddGroup(
		&cobra.Group{ID: "main", Title: "Main commands:"},
		&cobra.Group{ID: "inspect", Title: "Inspecting:"},
		&cobra.Group{ID: "other", Title: "Other commands:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("main", initCommand(a), validateCommand(a), testCommand(a), getCommand(a), planCommand(a), applyCommand(a), watchCommand(a), destroyCommand(a))
	add("inspect", statusCommand(a), logsCommand(a), execCommand(a), profileCommand(a), outputCommand(a), consoleCommand(a), showCommand(a), graphCommand(a), stateverbs.Command(a), rehearseCommand(a))
	add("other", ciCommand(a), emulateCommand(a), workspaceCommand(a), stopCommand(a), pauseCommand(a), resumeCommand(a), eventsCommand(a), costCommand(a), notifyCommand(a), runCommand(a), actorCommand(a), rlCommand(a), fmtCommand(a), policyCommand(a), moduleCommand(a), stateverbs.ImportCommand(a), schemaCommand(a), lspCommand(a), bugReportCommand(a), versionCommand(a))
	root.AddCommand(agentCommand(a), shimCommand(a), profilerCommand(a))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	root.InitDefaultCompletionCmd()
	commandline.Strict(root)
	registerCompletions(root)
	return root
}
