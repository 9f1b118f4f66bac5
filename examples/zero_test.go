package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// zeroStack has one job, which is a use case itself: it launches the others in its own
// namespace.
const zeroStack = `
namespace "own" {}

job "leader" {
  namespace = namespace.own
  command   = ["python", "PROGRAMS/marin/inference/inference_pool.py"]
}
`

// TestUseCasesOfFrayZero runs use cases 3, 4 and 5 of the reference, word for word
// (python/tests/zero), as clients of a controller by fray run, where each founds a
// namespace, and the third as a job. Their resolvers are made before the first launch.
func TestUseCasesOfFrayZero(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Abs("../python/tests/zero")
	if err != nil {
		t.Fatal(err)
	}
	s := newStack(t, "zero.hcl")
	s.env = append(pythonPath(t), "PYTHONPATH="+programs, "PYTHONDONTWRITEBYTECODE=1")
	config := strings.Replace(zeroStack, "PROGRAMS", programs, 1)
	if err := os.WriteFile(filepath.Join(s.dir, s.file), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	s.apply("--local")
	stop := s.watch("--local")
	eventually(t, "the watch serves", func() bool {
		return s.command(t.Context(), "run", "--local", "-C", s.file, "--", "true").Run() == nil
	})
	const answers = "['Response to: Hello, world!', 'Response to: What is the capital of France?']"
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"marin/inference/inference_pool.py"}, answers},
		{[]string{"drive.py", "rl"}, "the training worker succeeded at step 200, gs://bucket/checkpoints/step-200"},
		{[]string{"drive.py", "multislice"}, "slices train together"},
	} {
		program := append([]string{filepath.Join(programs, test.words[0])}, test.words[1:]...)
		out := s.run("run", append([]string{"--local", "-C", s.file, "--", "python"}, program...)...)
		if n := strings.Count(out, test.want+"\n"); n != 1 {
			t.Errorf("fray run -- python %s: got %q %d times in\n%s\nwant it once", strings.Join(test.words, " "), test.want, n, out)
		}
	}
	eventually(t, "the leader has succeeded", func() bool { return s.job("job.leader").Status == "succeeded" })
	if out := s.logs("job.leader"); strings.Count(out, answers+"\n") != 1 {
		t.Errorf("the leader wrote\n%s\nwant its answers once", out)
	}
	stop()
	s.destroy()
}
