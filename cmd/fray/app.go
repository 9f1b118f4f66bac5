package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent/task"
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

// verb is a command of fray, with the group that the help lists it in.
type verb struct {
	name    string
	group   string
	command func(*terminal.Terminal) *cobra.Command
}

// allVerbs are all commands, in the order in which their groups list them.
func allVerbs() []verb {
	return []verb{
		{"init", "main", initCommand}, {"validate", "main", validateCommand}, {"test", "main", testCommand}, {"get", "main", getCommand},
		{"plan", "main", planCommand}, {"apply", "main", applyCommand}, {"watch", "main", watchCommand}, {"destroy", "main", destroyCommand},

		{"status", "inspect", statusCommand}, {"logs", "inspect", logsCommand}, {"exec", "inspect", execCommand}, {"profile", "inspect", profileCommand},
		{"output", "inspect", outputCommand}, {"console", "inspect", consoleCommand}, {"show", "inspect", showCommand}, {"graph", "inspect", graphCommand},
		{"state", "inspect", stateverbs.Command}, {"rehearse", "inspect", rehearseCommand},

		{"ci", "other", ciCommand}, {"emulate", "other", emulateCommand}, {"workspace", "other", workspaceCommand}, {"stop", "other", stopCommand},
		{"pause", "other", pauseCommand}, {"resume", "other", resumeCommand}, {"events", "other", eventsCommand}, {"cost", "other", costCommand},
		{"notify", "other", notifyCommand}, {"run", "other", runCommand}, {"actor", "other", actorCommand}, {"rl", "other", rlCommand},
		{"fmt", "other", fmtCommand}, {"policy", "other", policyCommand}, {"module", "other", moduleCommand}, {"import", "other", stateverbs.ImportCommand},
		{"schema", "other", schemaCommand}, {"lsp", "other", lspCommand}, {"bug-report", "other", bugReportCommand}, {"version", "other", versionCommand},

		{"agent", "", agentCommand}, {"task-shim", "", shimCommand}, {task.ProfilerCommand, "", profilerCommand},
	}
}

// newRoot is fray with all its commands.
func newRoot(a *terminal.Terminal) *cobra.Command {
	root := rootOf(a, allVerbs())
	root.InitDefaultCompletionCmd()
	finish(root)
	return root
}

// rootFor is fray with the command alone that a command line begins with, and with all commands
// where it begins otherwise. Each process of an agent and a task would make the flags of forty others.
func rootFor(a *terminal.Terminal, args []string) *cobra.Command {
	for _, v := range allVerbs() {
		if len(args) > 0 && args[0] == v.name {
			root := rootOf(a, []verb{v})
			root.CompletionOptions.DisableDefaultCmd = true
			finish(root)
			return root
		}
	}
	return newRoot(a)
}

// rootOf is fray with some commands.
func rootOf(a *terminal.Terminal, verbs []verb) *cobra.Command {
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
	for _, v := range verbs {
		c := v.command(a)
		c.GroupID = v.group
		root.AddCommand(c)
	}
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	return root
}

// finish has commands reject what they do not take, and the shell complete what they do.
func finish(root *cobra.Command) {
	commandline.Strict(root)
	registerCompletions(root)
}
