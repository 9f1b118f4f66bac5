package commandline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fray-ml/fray/schema"
)

// flagError says of a flag that a command does not have which one may be meant,
// and of a value that does not fit what the flag wants.
func flagError(cmd *cobra.Command, err error) error {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		short, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "=")
		switch {
		case short == "":
			return unknownFlag(cmd, "--"+unknown.GetSpecifiedName())
		case len(short) > 1: // -target, as other tools write it
			return unknownFlag(cmd, "-"+short)
		}
		return unknownFlag(cmd, "-"+unknown.GetSpecifiedName())
	}
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		var want string
		switch wrong.GetFlag().Value.Type() {
		case "int", "int64":
			want = "a whole number"
		case "uint64":
			want = "a whole number, 0 or more"
		case "float64":
			want = "a number"
		case "bool":
			want = "true or false"
		case "duration":
			want = `a duration with a unit, such as "30s"`
		default: // one of our own, which says what it wants
			return fmt.Errorf("--%s=%s: %w", wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap())
		}
		return fmt.Errorf("--%s=%s: want %s", wrong.GetFlag().Name, wrong.GetValue(), want)
	}
	if without := (*pflag.ValueRequiredError)(nil); errors.As(err, &without) {
		f := without.GetFlag()
		value, usage := pflag.UnquoteUsage(f)
		return fmt.Errorf("%s: --%s is given without a value: write --%s=%s (%s)", cmd.CommandPath(), f.Name, f.Name, strings.ToUpper(value), usage)
	}
	if odd := (*pflag.InvalidSyntaxError)(nil); errors.As(err, &odd) {
		return fmt.Errorf("%s: %q is no flag: write --NAME=VALUE; %s --help lists the flags", cmd.CommandPath(), odd.GetSpecifiedFlag(), cmd.CommandPath())
	}
	return err
}

// foreignFlags are what users of Terraform and kubectl write, with what there is instead.
func foreignFlags() map[string]string {
	return map[string]string{
		"chdir":          "name the directory as the argument",
		"refresh":        "every plan observes what exists; --refresh-only records that and does nothing else",
		"lock":           "every change takes the lease, and nothing that only reads does",
		"state":          "the fray block of the files says where the state is",
		"backend-config": "the fray block of the files says where the state is",
		"namespace":      "the namespace of a job is an attribute of it; another copy of a stack is a workspace, --workspace=NAME",
		"replicas":       "the attribute count of a job says how many there are",
		"filename":       "name the file as the argument",
		"f":              "name the file as the argument",
		"force":          "--auto-approve asks nothing",
	}
}

func unknownFlag(cmd *cobra.Command, name string) error {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	hint := cmd.CommandPath() + " --help lists what there is"
	if _, err := strconv.ParseFloat(name, 64); err == nil {
		return fmt.Errorf("%s has no flag %s; write a number below zero behind --, as in -- %s", cmd.CommandPath(), name, name)
	}
	if here := foreignFlags()[strings.TrimLeft(name, "-")]; here != "" {
		return fmt.Errorf("%s has no flag %s; %s", cmd.CommandPath(), name, here)
	}
	if near := schema.Nearest("--"+strings.TrimLeft(name, "-"), names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return fmt.Errorf("%s has no flag %s; %s", cmd.CommandPath(), name, hint)
}
