package main

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
		case "bool":
			want = "true or false"
		case "duration":
			want = `a duration with a unit, such as "30s"`
		default:
			return err // one of our own, which says what it wants
		}
		return fmt.Errorf("--%s=%s: want %s", wrong.GetFlag().Name, wrong.GetValue(), want)
	}
	return err
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
	if near := schema.Nearest("--"+strings.TrimLeft(name, "-"), names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return fmt.Errorf("%s has no flag %s; %s", cmd.CommandPath(), name, hint)
}
