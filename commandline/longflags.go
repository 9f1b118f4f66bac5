package commandline

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fray-ml/fray/schema"
)

// Terraform writes long flags with one dash, where the flag library reads a group of
// one-letter flags: -out=p would be -o with the value "ut=p". LongFlags rewrites those
// before the library reads them.

// The names that Terraform and fray have for the same flag.
const (
	lockTimeout  = "lock-timeout"
	leaseTimeout = "lease-timeout"
)

// LongFlags is a command line, or one that a shell completes, with two dashes before every
// long flag that has one. Values of flags, what follows "--" and the command lines of other
// programs stay as they are.
func LongFlags(root *cobra.Command, args []string) []string {
	if len(args) < 2 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return longFlags(root, args)
	}
	last := len(args) - 1
	if strings.Contains(args[last], "=") {
		return append(args[:1:1], longFlags(root, args[1:])...)
	}
	// The last word is only the beginning of something.
	return append(append(args[:1:1], longFlags(root, args[1:last])...), args[last])
}

// longFlags is LongFlags of a whole command line.
func longFlags(root *cobra.Command, args []string) []string {
	root.InitDefaultVersionFlag()
	cmd, words := verbOf(root, args)
	cmd.InitDefaultHelpFlag()
	_ = cmd.InheritedFlags() // merges them into those of the command
	if cmd.DisableFlagParsing {
		return args
	}
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" || !isFlag(arg) && words == 0 && isOfProgram(cmd) {
			return append(out, args[i:]...)
		}
		if !isFlag(arg) {
			words = max(0, words-1)
			out = append(out, arg)
			continue
		}
		arg = twoDashes(cmd.Flags(), arg)
		out = append(out, arg)
		if takesNext(cmd.Flags(), arg) && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}

// verbOf is the command that some arguments name, and of how many words its name is
// among them.
func verbOf(root *cobra.Command, args []string) (cmd *cobra.Command, words int) {
	cmd = root
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--" || cmd.DisableFlagParsing:
			return cmd, words
		case isFlag(args[i]):
			if arg := twoDashes(cmd.Flags(), args[i]); takesNext(cmd.Flags(), arg) {
				i++
			}
			continue
		}
		next := subcommand(cmd, args[i])
		if next == nil {
			return cmd, words
		}
		cmd, words = next, words+1
		_ = cmd.InheritedFlags()
	}
	return cmd, words
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

// OfProgram is the annotation of a command whose arguments are the command line of another
// program, flags and all.
const OfProgram = "command-line"

func isOfProgram(cmd *cobra.Command) bool { return cmd.Annotations[OfProgram] != "" }

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// twoDashes is a flag with two dashes, if it is a long flag of the command by any of
// its names.
func twoDashes(flags *pflag.FlagSet, arg string) string {
	name, value, given := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	if name == lockTimeout && flags.Lookup(name) == nil {
		name = leaseTimeout
	}
	if len(name) < 2 || flags.Lookup(name) == nil && !misspelt(flags, arg, name) {
		return arg
	}
	if given {
		return "--" + name + "=" + value
	}
	return "--" + name
}

// misspelt reports whether a group of letters is rather a long flag with a mistake, whose
// rest would be taken for the value of its first letter: -outt=p is no -o.
func misspelt(flags *pflag.FlagSet, arg, name string) bool {
	if strings.HasPrefix(arg, "--") || !ascii(name[0]) {
		return false
	}
	short := flags.ShorthandLookup(name[:1])
	if short == nil || short.Value.Type() != "string" {
		return false
	}
	var alike []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name[0] == name[0] {
			alike = append(alike, f.Name)
		}
	})
	return schema.Nearest(name, alike) != ""
}

func ascii(letter byte) bool { return letter < utf8.RuneSelf }

// takesNext reports whether the value of a flag is the next argument.
func takesNext(flags *pflag.FlagSet, arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		f := flags.Lookup(name)
		return f != nil && f.NoOptDefVal == ""
	}
	for i := 1; i < len(arg) && ascii(arg[i]); i++ { // a group: the first that takes a value has the rest as its value
		f := flags.ShorthandLookup(arg[i : i+1])
		if f == nil {
			return false
		}
		if f.NoOptDefVal == "" {
			return i == len(arg)-1
		}
	}
	return false
}
