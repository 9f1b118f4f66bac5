package format

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// BenchmarkFormat formats what is as it is to be, and what is not; the baseline
// is hclwrite.Format alone, without a look at whether the source parses.
func BenchmarkFormat(b *testing.B) {
	canonical := bytes.Repeat([]byte(`job "train" {
  # one for each shard
  count   = 3
  command = ["python", "-m", "train", "--worker=${count.index}", "--lr=1e-4"]
  resources {
    tpu    = "v5litepod-16" # sixteen chips
    slices = var.wide ? 2 : 1
  }
  environment {
    env = { SHARD = count.index, NAME = upper(local.name) }
  }
}

`), 400)
	unformatted := []byte(strings.NewReplacer(" = ", "=", "  ", " ").Replace(string(canonical)))
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"canonical", func() { _, _ = Source(canonical, "x.hcl") }},
		{"unformatted", func() { _, _ = Source(unformatted, "x.hcl") }},
		{"baseline", func() { _ = hclwrite.Format(unformatted) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(canonical)))
			for b.Loop() {
				c.do()
			}
		})
	}
}
