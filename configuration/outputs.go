package configuration

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

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

// PrintOutput prints the value of one output, raw or as JSON.
func PrintOutput(a *terminal.Terminal, o schema.Output, s schema.Sealer, raw bool) error {
	value, err := outputValue(o, s)
	if err != nil {
		return err
	}
	var text string
	if json.Unmarshal(value, &text) == nil && raw {
		_, err := fmt.Fprint(a.Stdout, text)
		return err
	}
	if raw && (len(value) == 0 || value[0] == '{' || value[0] == '[') {
		return fmt.Errorf("--raw prints strings, numbers and booleans; use --json for this one")
	}
	_, err = fmt.Fprintln(a.Stdout, indented(value, ""))
	return err
}

// PrintOutputsJSON prints outputs as a JSON object.
func PrintOutputsJSON(a *terminal.Terminal, outputs map[string]schema.Output, s schema.Sealer) error {
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
	return a.PrintJSON(out)
}

// PrintOutputs ends an apply.
func PrintOutputs(a *terminal.Terminal, outputs map[string]schema.Output) error {
	if len(outputs) == 0 {
		return nil
	}
	fmt.Fprint(a.Stdout, "\nOutputs:\n\n")
	return OutputLines(a, outputs)
}

// OutputLines prints a line for each output, sorted by name.
func OutputLines(a *terminal.Terminal, outputs map[string]schema.Output) error {
	for _, name := range stack.SortedKeys(outputs) {
		o := outputs[name]
		value := indented(o.Value, "")
		switch {
		case o.Sensitive:
			value = "(sensitive value)"
		case o.Unknown:
			value = "(known after apply)"
		}
		if _, err := fmt.Fprintf(a.Stdout, "%s = %s\n", name, value); err != nil {
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
