package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// languageBench measures the language beside terraform.
type languageBench struct{ *bench }

// languages measures what works on files alone: validating, planning one large
// for_each, formatting. Terraform is measured on the same files, or on
// equivalent ones of terraform_data, which needs no provider.
func (b languageBench) languages() error {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		terraform = "" // then there are no baselines
	}
	defer func() { _ = b.out.Flush() }()
	return errors.Join(b.validations(terraform), b.manyKeys(terraform), b.formats(terraform))
}

// validations validates configurations that double in size.
func (b languageBench) validations(terraform string) error {
	beside := "terraform is not here"
	if terraform != "" {
		dir, err := b.terraformData(terraform, "validate", blocksInTerraform(10_000))
		if err != nil {
			return err
		}
		theirs, err := b.terraformIn(terraform, dir, "validate")
		if err != nil {
			return err
		}
		beside = fmt.Sprintf("terraform validate, 10,000 terraform_data: %s (%s), %s", sec(theirs.wall), sec(theirs.cpu), mb(theirs.peak))
	}
	var last cost
	for _, n := range []int{2_500, 5_000, 10_000, 20_000} {
		dir, err := b.scratch(fmt.Sprintf("validate-%d", n), blocks(n))
		if err != nil {
			return err
		}
		c, err := median(3, func() *exec.Cmd { return b.command(dir, "validate") })
		if err != nil {
			return err
		}
		target, note := "linear", ""
		if last.wall > 0 {
			note = fmt.Sprintf("half as many: x%.2f", float64(c.wall)/float64(last.wall))
		}
		if n == 10_000 {
			target, note = "< 1.5 s", note+"; "+beside
		}
		b.row(fmt.Sprintf("validate, %d blocks", n), fmt.Sprintf("%s (%s of processor time), %s", sec(c.wall), sec(c.cpu), mb(c.peak)), target, note)
		last = c
	}
	return nil
}

// blocks is a configuration of n blocks: variables, locals, jobs of which most
// read from others.
func blocks(n int) string {
	var s strings.Builder
	for i := range n {
		switch i % 10 {
		case 0:
			fmt.Fprintf(&s, "variable \"v%d\" {\n  type    = number\n  default = %d\n}\n\n", i, i)
		case 1:
			fmt.Fprintf(&s, "locals {\n  l%d = { rate = var.v%d / 2, name = \"run-${var.v%d}\" }\n}\n\n", i, i-1, i-1)
		case 2:
			fmt.Fprintf(&s, "output \"o%d\" {\n  value = job.j%d.address\n}\n\n", i, i+1)
		case 3:
			fmt.Fprintf(&s, "job \"j%d\" {\n  command = [\"work\", \"--name=${local.l%d.name}\"]\n  resources {\n    cpu    = 1\n    memory = \"1g\"\n    ports  = [\"http\"]\n  }\n}\n\n", i, i-2)
		default:
			first := i - i%10 + 3
			fmt.Fprintf(&s, "job \"j%d\" {\n  command    = [\"work\", \"--rate=${local.l%d.rate}\", job.j%d.address]\n  depends_on = [job.j%d]\n  environment {\n    env = { RANK = \"%d\", NAME = upper(local.l%d.name) }\n  }\n}\n\n",
				i, first-2, first, first, i, first-2)
		}
	}
	return s.String()
}

func blocksInTerraform(n int) string {
	var s strings.Builder
	for i := range n {
		input := `"first"`
		if i%10 > 0 {
			input = fmt.Sprintf(`"x-${terraform_data.r%d.output}"`, i-i%10)
		}
		fmt.Fprintf(&s, "resource \"terraform_data\" \"r%d\" {\n  input = %s\n}\n\n", i, input)
	}
	return s.String()
}

// manyKeys plans one job of 50,000 keys.
func (b languageBench) manyKeys(terraform string) error {
	const n, theirN = 50_000, 1_000
	dir, err := b.scratch("keys", keyed(n))
	if err != nil {
		return err
	}
	ours, err := measure(b.command(dir, "plan"))
	if err != nil {
		return err
	}
	beside := ""
	if terraform != "" {
		dir, err := b.terraformData(terraform, "keys", fmt.Sprintf(`
resource "terraform_data" "work" {
  for_each = merge([for a in range(%d) : { for i in range(1000) : format("shard-%%03d-%%03d", a, i) => i }]...)
  input    = "${each.key}-${each.value}"
}
`, theirN/1000))
		if err != nil {
			return err
		}
		theirs, err := b.terraformIn(terraform, dir, "plan")
		if err != nil {
			return err
		}
		each := func(d time.Duration, n int) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
		beside = fmt.Sprintf("terraform plan, %d keys of terraform_data: %s (%.2f ms a key, ours %.2f)",
			theirN, sec(theirs.wall), each(theirs.wall, theirN), each(ours.wall, n))
	}
	b.row(fmt.Sprintf("plan, one for_each over %d keys", n), fmt.Sprintf("%s (%s of processor time), %s", sec(ours.wall), sec(ours.cpu), mb(ours.peak)), "< 6 s", beside)
	return nil
}

// formats formats the same files with both tools: those that are as they are to
// be, and those that are not.
func (b languageBench) formats(terraform string) error {
	const files, blocksEach = 32, 5_000
	text := blocks(blocksEach)
	for _, c := range []struct{ name, text string }{
		{"canonical", text},
		{"unformatted", strings.NewReplacer(" = ", "=", "  ", " ").Replace(text)},
	} {
		dir := filepath.Join(b.dir, "fmt-"+c.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for i := range files {
			for _, ending := range []string{".hcl", ".tf"} {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d%s", i, ending)), []byte(c.text), 0o644); err != nil {
					return err
				}
			}
		}
		if err := b.formatted(dir, c.name, terraform, files*len(c.text)); err != nil {
			return err
		}
	}
	return nil
}

func (b languageBench) formatted(dir, name, terraform string, bytes int) error {
	rate := func(d time.Duration) float64 { return float64(bytes) / 1e6 / d.Seconds() }
	beside := ""
	if terraform != "" {
		theirs, err := measure(b.formatter(dir, terraform, "fmt", "-list=false", "-check"))
		if err != nil {
			return err
		}
		beside = fmt.Sprintf("terraform fmt of the same: %.1f MB/s (%.1f)", rate(theirs.wall), rate(theirs.cpu))
	}
	for _, run := range []struct {
		what, threads string
		args          []string
	}{
		{"1 thread", "1", []string{"fmt", "--check", "--list=false"}},
		{"2 threads", "2", []string{"fmt", "--check", "--list=false"}},
		{"2 threads, and written", "2", []string{"fmt", "--list=false"}},
	} {
		tries := 3
		if !slices.Contains(run.args, "--check") {
			tries = 1 // then they are as they are to be
		}
		c, err := median(tries, func() *exec.Cmd {
			cmd := b.formatter(dir, b.fray, run.args...)
			cmd.Env = append(cmd.Env, "GOMAXPROCS="+run.threads)
			return cmd
		})
		if err != nil {
			return err
		}
		b.row(fmt.Sprintf("fmt, %d MB %s, %s", bytes/1e6, name, run.what), fmt.Sprintf("%.0f MB/s (%.0f by processor time), %s", rate(c.wall), rate(c.cpu), mb(c.peak)), "> 50 MB/s", beside)
		beside = ""
	}
	return nil
}

// formatter runs a formatter in a directory; that it would change something is
// no failure.
func (b languageBench) formatter(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, "sh", append([]string{"-c", `"$0" "$@" || test $? -eq 3`, program}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=/dev/null")
	return cmd
}

// terraformData makes a directory with a configuration of terraform_data.
func (b languageBench) terraformData(terraform, name, config string) (string, error) {
	dir := filepath.Join(b.dir, "terraform-"+name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o644); err != nil {
		return "", err
	}
	_, err := b.terraformIn(terraform, dir, "init")
	return dir, err
}

func (b languageBench) terraformIn(program, dir string, args ...string) (cost, error) {
	return limited(b.ctx, b.opts.limit, func(cmd *exec.Cmd) {
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE=/dev/null")
	}, append([]string{program}, args...)...)
}

// planning plans one block with for_each in one file, nothing of which is there yet, in
// sizes that grow tenfold: jobs, each of one task on a host of its own. A plan of a million
// is left out unless -million is given.
func (b languageBench) planning() error {
	formerly := map[int]string{100_000: "formerly 8.2 s, 1.3 GB"}
	targets := map[int]string{100_000: "< 4 s, 700 MB", 1_000_000: "< 45 s"}
	var last cost
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		if n == 1_000_000 && !b.opts.million {
			break
		}
		dir, err := b.scratch(fmt.Sprintf("planning-%d", n), keyed(n))
		if err != nil {
			return err
		}
		c, err := measure(b.command(dir, "plan"))
		if err != nil {
			return err
		}
		beside := formerly[n]
		if last.cpu > 0 {
			if beside != "" {
				beside += "; "
			}
			beside += fmt.Sprintf("processor time of a tenth: x%.1f", float64(c.cpu)/float64(last.cpu))
		}
		b.row(fmt.Sprintf("plan, %d jobs of one task in one for_each", n), fmt.Sprintf("%s (%s of processor time), %s", sec(c.wall), sec(c.cpu), mb(c.peak)), targets[n], beside)
		last = c
	}
	return nil
}

// keyed is a block of n instances, a multiple of 1,000.
func keyed(n int) string {
	return fmt.Sprintf(`
job "work" {
  for_each = merge([for a in range(%d) : { for i in range(1000) : format("shard-%%03d-%%03d", a, i) => i }]...)
  command  = ["true", "--shard=${each.key}", "--seed=${each.value}"]
}
`, n/1000)
}
