package commandline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
)

// foreignVerbs are what users of Terraform, kubectl, Docker Compose and Ray type, by the
// command that they type it after, with what does that here.
func foreignVerbs() map[string]map[string]string {
	return map[string]map[string]string{
		"fray": {
			"up": "fray apply", "create": "fray apply", "start": "fray apply", "submit": "fray apply", "deploy": "fray apply",
			"down": "fray destroy", "delete": "fray destroy --target=ADDR, or fray stop ADDR for a job that is to stay declared",
			"rm": "fray destroy --target=ADDR", "kill": "fray stop ADDR", "cancel": "fray stop ADDR",
			"refresh": "fray apply --refresh-only", "diff": "fray plan",
			"taint": "fray apply --replace=ADDR", "untaint": "nothing: fray apply --replace=ADDR marks nothing beforehand", "restart": "fray apply --replace=ADDR",
			"describe": "fray status ADDR", "ps": "fray status", "list": "fray status", "ls": "fray status", "top": "fray status --watch",
			"attach": "fray logs -f ADDR", "tail": "fray logs -f ADDR", "ssh": "fray exec ADDR -- bash", "shell": "fray exec ADDR -- bash",
			"force-unlock": "fray state lease --break", "env": "fray workspace", "outputs": "fray output",
			"scale": "the attribute count of the job, and then fray apply", "edit": "your editor on the files, and then fray apply",
			"rollback": "fray state rollback SERIAL", "providers": "fray schema", "modules": "fray get", "mv": "fray state mv FROM TO", "import-state": "fray import ADDR ID...",
		},
		"fray state": {
			"move": "fray state mv FROM TO", "rename": "fray state mv FROM TO", "delete": "fray state rm ADDR", "remove": "fray state rm ADDR",
			"ls": "fray state list", "get": "fray state show ADDR", "cat": "fray state pull", "unlock": "fray state lease --break", "replace-provider": "fray state migrate FROM",
		},
		"fray workspace": {
			"create": "fray workspace new NAME", "use": "fray workspace select NAME", "switch": "fray workspace select NAME",
			"rm": "fray workspace delete NAME", "remove": "fray workspace delete NAME", "ls": "fray workspace list", "current": "fray workspace show",
		},
	}
}

// Strict has every command below root reject what it does not take: subcommands that there
// are not, missing and superfluous arguments, and flags and values that do not fit.
func Strict(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultHelpCmd()
	refuseUnknown(root)
	explainArguments(root)
}

// refuseUnknown makes unknown subcommands errors, at every level, and a command
// that is nothing but its subcommands print its help.
func refuseUnknown(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		refuseUnknown(c)
	}
	if cmd.Runnable() || !cmd.HasSubCommands() {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownVerb(cmd, args[0])
	}
}

// unknownVerb is the error about a subcommand that there is not, with the nearest one.
func unknownVerb(cmd *cobra.Command, word string) error {
	if here := foreignVerbs()[cmd.CommandPath()][strings.ToLower(word)]; here != "" {
		return fmt.Errorf("%s has no command %q; what does that here is %s", cmd.CommandPath(), word, here)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := "; " + cmd.CommandPath() + " --help lists what there is"
	if near := schema.Nearest(word, names); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return fmt.Errorf("%s has no command %q%s", cmd.CommandPath(), word, hint)
}

// CheckVerb is the error about a command line whose command there is not, where the flag
// library would print some help instead.
func CheckVerb(root *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "help":
		args = args[1:]
	case len(args) > 0 && isVerb(args[0]) && subcommand(root, args[0]) == nil:
		return unknownVerb(root, args[0]) // whatever flags follow
	case !asksForHelp(args):
		return nil
	}
	cmd, words := verbOf(root, args)
	if !cmd.HasSubCommands() {
		return nil
	}
	for _, arg := range args {
		switch {
		case arg == "--":
			return nil
		case isFlag(arg):
		case words > 0:
			words--
		case subcommand(cmd, arg) == nil && isVerb(arg):
			return unknownVerb(cmd, arg)
		}
	}
	return nil
}

// isVerb reports whether an argument may name a command that people call.
func isVerb(arg string) bool { return !isFlag(arg) && arg != "--" && !strings.HasPrefix(arg, "__") }

func asksForHelp(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--help", "-h":
			return true
		}
	}
	return false
}
