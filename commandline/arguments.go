package commandline

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// explainArguments has every command that rejects the number of its arguments report
// which one is missing, or too many, and how the command is written.
func explainArguments(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		explainArguments(c)
	}
	if cmd.HasSubCommands() || cmd.Args == nil {
		return
	}
	fits := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := fits(cmd, args)
		if err == nil {
			return nil
		}
		return ArgumentsError(cmd, args, err)
	}
}

// Hint is an error about arguments that says more than how many there are.
type Hint string

func (h Hint) Error() string { return string(h) }

// ArgumentsError reports what the arguments of a command are instead of those in its usage.
func ArgumentsError(cmd *cobra.Command, args []string, cause error) error {
	form := []string{cmd.CommandPath()}
	var required []string
	most := 0
	// One argument in the usage of a command, with its brackets where it may be left out.
	placeholder := regexp.MustCompile(`\[[^\]]*\]|\S+`)
	for _, p := range placeholder.FindAllString(cmd.Use, -1)[1:] {
		if p == "[flags]" {
			continue
		}
		form = append(form, p)
		switch {
		case p == "--":
			continue
		case p[0] != '[':
			required = append(required, strings.TrimSuffix(p, "..."))
		}
		if most++; strings.Contains(p, "...") {
			most += len(args)
		}
	}
	wrong := cause.Error()
	switch {
	case len(args) < len(required):
		missing := required[len(args):]
		wrong = enumerate(missing) + pick(len(missing), " is missing", " are missing")
	case len(args) > most && most == 0:
		wrong = "it takes no argument, and is given " + enumerate(quoted(args))
	case len(args) > most:
		surplus := quoted(args[most:])
		wrong = enumerate(surplus) + pick(len(surplus), " is one argument too many", " are too many arguments")
	}
	if hint, ok := errors.AsType[Hint](cause); ok {
		wrong += ": " + string(hint)
	}
	return fmt.Errorf("%s: %s; write %s, which %s --help explains", cmd.CommandPath(), wrong, strings.Join(form, " "), cmd.CommandPath())
}

func quoted(args []string) []string {
	var all []string
	for _, a := range args {
		all = append(all, strconv.Quote(a))
	}
	return all
}

// enumerate is "a, b and c".
func enumerate(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func pick(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
