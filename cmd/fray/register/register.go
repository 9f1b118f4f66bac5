// Package register registers the flags that several verbs share, into the options of the packages that
// carry the verbs out.
package register

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/surgery"
)

// Config registers the variables, and where the stack is.
func Config(f *configuration.Options, cmd *cobra.Command) {
	cmd.Flags().Var(givenFlag{eval.GivenVar, &f.Given}, "var", "set a variable, `NAME=VALUE`; may be repeated")
	cmd.Flags().Var(givenFlag{eval.GivenVarFile, &f.Given}, "var-file", "read variables from `FILE`; may be repeated")
	cmd.Flags().BoolVar(&f.Input, "input", true, "ask on a terminal for variables that have no value")
	Place(f, cmd)
}

// Place registers the flags that say where the stack is.
func Place(f *configuration.Options, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Local, "local", false, "map every provider and the state onto this machine")
	cmd.Flags().StringVar(&f.Workspace, "workspace", "", "act in workspace `NAME` instead of the selected one")
}

// givenFlag appends to a list that several flags share, so that their order on
// the command line counts.
type givenFlag struct {
	kind eval.GivenKind
	list *[]eval.Given
}

func (f givenFlag) Set(text string) error {
	*f.list = append(*f.list, eval.Given{Kind: f.kind, Text: text})
	return nil
}

func (f givenFlag) String() string { return "" }

func (f givenFlag) Type() string { return "text" }

// Change registers what selects and shows a change.
func Change(f *proposal.ChangeOptions, cmd *cobra.Command) {
	Config(&f.Options, cmd)
	cmd.Flags().StringArrayVar(&f.Targets, "target", nil, "only `ADDR` and what it depends on; may be repeated")
	cmd.Flags().StringArrayVar(&f.Replace, "replace", nil, "give `ADDR` new slices and a fresh start; may be repeated")
	cmd.Flags().BoolVar(&f.Destroy, "destroy", false, "take down everything, or what --target names and what depends on it, as fray destroy does")
	cmd.Flags().BoolVar(&f.RefreshOnly, "refresh-only", false, "only compare the state with what is observed, and record the differences")
	cmd.Flags().BoolVar(&f.JSON, "json", false, "print JSON (docs/plan-json.md)")
	Policies(&f.Policies, cmd)
}

// Policies registers which policies hold besides those of the stack, and which are overridden.
func Policies(f *policies.Options, cmd *cobra.Command) {
	PolicyDirs(f, cmd)
	cmd.Flags().StringArrayVar(&f.Overrides, "override", nil, "carry the plan out although a policy denies it that you may override: `POLICY=REASON`, which goes on record; may be repeated")
}

// PolicyDirs registers the directories of policies that hold besides those of the stack.
func PolicyDirs(f *policies.Options, cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Dirs, "policy-dir", nil, "hold plans to the policies of `DIR`, too, beside those of the stack and of FRAY_POLICY_DIR; may be repeated")
}

// State registers which stack a verb of its state acts on.
func State(f *surgery.Options, cmd *cobra.Command) {
	Config(&f.Configuration, cmd)
	cmd.Flags().StringVarP(&f.Dir, "chdir", "C", ".", "act on the stack of `DIR` (or of one file)")
}

// Edit registers what a verb that changes the state needs besides.
func Edit(f *surgery.EditOptions, cmd *cobra.Command) {
	State(&f.Options, cmd)
	cmd.Flags().DurationVar(&f.LeaseTimeout, "lease-timeout", 0, "how long to wait for another process that is changing the stack")
}
