package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fray-ml/fray/commandline"
	"github.com/fray-ml/fray/terminal"
)

func quietRoot() *cobra.Command { return newRoot(terminal.New(nil, io.Discard, io.Discard)) }

// flagsOf are all flags of a command, with those of the commands above it.
func flagsOf(cmd *cobra.Command) []*pflag.Flag {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	_ = cmd.InheritedFlags()
	var all []*pflag.Flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f) })
	return all
}

// valueOf is a value that a flag takes, which looks like a flag where it can.
func valueOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true"
	case "int", "float64":
		return "-7"
	case "uint64":
		return "7"
	case "duration":
		return "-7s"
	}
	return "-json"
}

// Every long flag of every verb may be written with one dash, its value after = or as the
// next argument, before what follows it and behind; one letter stays one letter.
func TestOneDash(t *testing.T) {
	root := quietRoot()
	for _, verb := range verbs(quietRoot()) {
		if verb.DisableFlagParsing {
			continue
		}
		path := strings.Fields(verb.CommandPath())[1:]
		for _, f := range flagsOf(verb) {
			forms := [][]string{{"-" + f.Name + "=" + valueOf(f)}}
			if f.NoOptDefVal == "" {
				forms = append(forms, []string{"-" + f.Name, valueOf(f)})
			} else {
				forms = append(forms, []string{"-" + f.Name})
			}
			if f.Shorthand != "" {
				short := []string{"-" + f.Shorthand}
				if f.NoOptDefVal == "" {
					short = append(short, valueOf(f))
				}
				if got := commandline.LongFlags(root, slices.Concat(path, short)); !slices.Equal(got, slices.Concat(path, short)) {
					t.Errorf("fray %v %v becomes %v, want it as it is", path, short, got)
				}
			}
			for _, form := range forms {
				two := slices.Clone(form)
				two[0] = "-" + two[0]
				for _, c := range []struct{ given, want []string }{
					{slices.Concat(path, form), slices.Concat(path, two)},
					{slices.Concat(path, two), slices.Concat(path, two)},
					{slices.Concat(path, form, []string{"x"}), slices.Concat(path, two, []string{"x"})},
					{slices.Concat(path, []string{"--"}, form), slices.Concat(path, []string{"--"}, form)},
				} {
					if got := commandline.LongFlags(root, c.given); !slices.Equal(got, c.want) {
						t.Errorf("fray %q: got %q, want %q", c.given, got, c.want)
					}
				}
				checkParsed(t, root, path, form, f)
			}
		}
	}
}

// checkParsed parses a command line, and checks that it sets the flag and no other one.
func checkParsed(t *testing.T, root *cobra.Command, path, form []string, f *pflag.Flag) {
	t.Helper()
	cmd, rest, err := root.Find(commandline.LongFlags(root, slices.Concat(path, form)))
	if err != nil {
		t.Errorf("fray %q %q: %v", path, form, err)
		return
	}
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	for _, each := range flagsOf(cmd) {
		each.Changed = false // by the form before
		flags.AddFlag(each)
	}
	if err := flags.Parse(rest); err != nil {
		t.Errorf("fray %q %q: %v", path, form, err)
		return
	}
	var set []string
	flags.Visit(func(f *pflag.Flag) { set = append(set, f.Name) })
	if !slices.Equal(set, []string{f.Name}) || len(flags.Args()) > 0 {
		t.Errorf("fray %q %q sets %q and leaves %q, want %q alone", path, form, set, flags.Args(), f.Name)
	}
}

func TestOneDashOfOthers(t *testing.T) {
	for line, want := range map[string]string{
		"plan -out p":                       "plan --out p",
		"plan -out=p -var x=1 -target=a":    "plan --out=p --var x=1 --target=a",
		"-no-color plan -json":              "--no-color plan --json",
		"plan -o p":                         "plan -o p",
		"plan -op":                          "plan -op",
		"plan -outt=p":                      "plan --outt=p", // an error, and no file named utt=p
		"plan -ou p":                        "plan --ou p",
		"plan --var -target=x":              "plan --var -target=x",
		"plan -o -json -json":               "plan -o -json --json",
		"logs -fn 5 -follow":                "logs -fn 5 --follow",
		"logs -n -1 -since 1m":              "logs -n -1 --since 1m",
		"logs -n5 -Cdir -chdir=x":           "logs -n5 -Cdir --chdir=x",
		"exec job.a -it -task 1 -- ps -tty": "exec job.a -it --task 1 -- ps -tty",
		"run -chdir x python -var y":        "run --chdir x python -var y",
		"run -- python -local":              "run -- python -local",
		"run -local python -local":          "run --local python -local",
		"agent -store x":                    "agent -store x",
		"apply -lock-timeout=30s":           "apply --lease-timeout=30s",
		"state mv --lock-timeout 30s a b":   "state mv --lease-timeout 30s a b",
		"fmt -lock-timeout=30s":             "fmt -lock-timeout=30s",
		"plan -1 -é -":                      "plan -1 -é -",
		"-version":                          "--version",
		"-help":                             "--help",
		"state list -help":                  "state list --help",
		"nosuch -json":                      "nosuch -json",
		"":                                  "",
	} {
		if got := strings.Join(commandline.LongFlags(quietRoot(), strings.Fields(line)), " "); got != want {
			t.Errorf("fray %s: got %q, want %q", line, got, want)
		}
	}
}
