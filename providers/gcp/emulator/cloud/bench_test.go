package cloud_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// BenchmarkWeek is 7 days of 2,000 spot groups that live for 6 hours on average
// and are made again, with a list of them all every 10 minutes; and how many
// times faster than life that is.
func BenchmarkWeek(b *testing.B) {
	const groups, step, lasts = 2000, 10 * time.Minute, 7 * 24 * time.Hour
	for b.Loop() {
		clock := cloud.NewVirtual(start())
		c := cloud.New(cloud.Config{Clock: clock, Scenario: cloud.Scenario{Seed: 1, Conditions: cloud.Conditions{Preemption: 6 * time.Hour}}})
		for i := range groups {
			if _, err := c.Allocate(spot(fmt.Sprintf("n%04d", i))); err != nil {
				b.Fatal(err)
			}
		}
		preempted := 0
		for since := time.Duration(0); since < lasts; since += step {
			clock.Advance(step)
			for _, g := range c.Groups(project, cloud.KindNode, "") {
				if g.Shown != cloud.StatePreempted {
					continue
				}
				preempted++
				if _, err := c.Delete(g.Key); err != nil {
					b.Fatal(err)
				}
				clock.Advance(2 * time.Second)
				if _, err := c.Allocate(spot(g.Name)); err != nil {
					b.Fatal(err)
				}
			}
		}
		if preempted < 20*groups {
			b.Fatalf("only %d were preempted", preempted)
		}
	}
	b.ReportMetric(lasts.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "times-life")
}
