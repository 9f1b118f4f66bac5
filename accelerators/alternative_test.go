package accelerators

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

func TestParseAlternative(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]schema.Accelerator{
		"v5litepod-16": "v5litepod-16", "v5e-16": "v5litepod-16", "v4-8": "v4-8",
		"h100:8": "h100:8", "H100:8": "h100:8", "h100": "h100:1", "nvidia-a100-80gb:2": "a100-80gb:2", "l4": "l4:1",
	} {
		if got, err := ParseAlternative(text); err != nil || got != want {
			t.Errorf("%s is %q and %v, want %q", text, got, err, want)
		}
		if want.TPU() != "" && want.GPU() != (schema.GPU{}) || want.TPU() == "" && want.GPU().Kind() != string(want) {
			t.Errorf("%s is the TPU %q and the GPUs %v", want, want.TPU(), want.GPU())
		}
	}
	for text, want := range map[string]string{
		"v5litepod-17": `"v5litepod-16"`, "v5litpod-16": `"v5litepod-16"`, "h101:8": `"h100"`, "h100-8": `write "h100:8"`,
		"h100:0": "from 1 to", "h100:many": "from 1 to", "v4-8:2": `write "v4-8"`, "qpu": "v5litepod", "": "such as",
	} {
		if got, err := ParseAlternative(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %q and %v, want an error with %q", text, got, err, want)
		}
	}
}
