package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func outputCommand(a *app) *cobra.Command {
	var config configFlags
	var asJSON, raw bool
	var dir string
	cmd := &cobra.Command{
		Use:   "output [NAME]",
		Short: "Print the outputs of the last apply",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			outputs := l.doc.Outputs
			if len(args) == 0 {
				if raw {
					return fmt.Errorf("--raw wants the NAME of one output")
				}
				if asJSON {
					return a.outputsJSON(outputs, l.sealer)
				}
				if len(outputs) == 0 {
					fmt.Fprintln(a.stdout, "No outputs. Declare output blocks and run fray apply.")
					return nil
				}
				return a.outputLines(outputs)
			}
			o, ok := outputs[args[0]]
			if !ok {
				hint := ""
				if near := schema.Nearest(args[0], sortedKeys(outputs)); near != "" {
					hint = "; did you mean " + near + "?"
				}
				return fmt.Errorf("there is no output %q in the state%s", args[0], hint)
			}
			return a.oneOutput(o, l.sealer, raw)
		},
	}
	config.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, sensitive values in clear")
	cmd.Flags().BoolVar(&raw, "raw", false, "print a string as it is, for scripts")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "look at the stack of `DIR` (or of one file)")
	return cmd
}

// outputValue is the JSON of an output in clear; it was asked for by name or as JSON.
func outputValue(o schema.Output, s schema.Sealer) (json.RawMessage, error) {
	if o.Unknown {
		return json.RawMessage("null"), nil
	}
	if !o.Sensitive {
		return o.Value, nil
	}
	plain, err := o.Secret.Reveal(s)
	return json.RawMessage(plain), err
}

func (a *app) oneOutput(o schema.Output, s schema.Sealer, raw bool) error {
	value, err := outputValue(o, s)
	if err != nil {
		return err
	}
	var text string
	if json.Unmarshal(value, &text) == nil && raw {
		_, err := fmt.Fprint(a.stdout, text)
		return err
	}
	if raw && (len(value) == 0 || value[0] == '{' || value[0] == '[') {
		return fmt.Errorf("--raw prints strings, numbers and booleans; use --json for this one")
	}
	_, err = fmt.Fprintln(a.stdout, indented(value, ""))
	return err
}

func (a *app) outputsJSON(outputs map[string]schema.Output, s schema.Sealer) error {
	type one struct {
		Value     json.RawMessage `json:"value"`
		Sensitive bool            `json:"sensitive"`
	}
	out := map[string]one{}
	for name, o := range outputs {
		value, err := outputValue(o, s)
		if err != nil {
			return err
		}
		out[name] = one{value, o.Sensitive}
	}
	return a.printJSON(out)
}

// printOutputs ends an apply.
func (a *app) printOutputs(outputs map[string]schema.Output) error {
	if len(outputs) == 0 {
		return nil
	}
	fmt.Fprint(a.stdout, "\nOutputs:\n\n")
	return a.outputLines(outputs)
}

func (a *app) outputLines(outputs map[string]schema.Output) error {
	for _, name := range sortedKeys(outputs) {
		o := outputs[name]
		value := indented(o.Value, "")
		switch {
		case o.Sensitive:
			value = "(sensitive value)"
		case o.Unknown:
			value = "(known after apply)"
		}
		if _, err := fmt.Fprintf(a.stdout, "%s = %s\n", name, value); err != nil {
			return err
		}
	}
	return nil
}

func indented(value json.RawMessage, prefix string) string {
	var b bytes.Buffer
	if json.Indent(&b, value, prefix, "  ") != nil {
		return string(value)
	}
	return b.String()
}
