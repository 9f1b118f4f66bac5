package main

import "fmt"

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
