package usage

import (
	"context"
	"time"

	"github.com/fray-ml/fray/state"
)

const (
	// pace is the least time between two samples.
	pace = 5 * time.Second
	// costRatio bounds the part of a processor that sampling takes.
	costRatio = 500
	// patience bounds how long a sample waits for a program's answer.
	patience = 300 * time.Millisecond
)

// Task is a task that runs.
type Task struct {
	Slice string
	Key   string // of its start
	// Roots are processes whose descendants are the task's, themselves left out.
	Roots []int
	// Container is the first process of its container, 0 if it has none.
	Container int
	TPU       bool   // it uses the chips of this host
	Actors    string // where its actors count their calls, host:port; "": it hosts none
}

// Sampler measures tasks now and then. It is not for concurrent use.
type Sampler struct {
	// Tasks returns those that run.
	Tasks func(context.Context) []Task

	chips  chips
	scrape scraper

	at   time.Time // of the last sample
	wait time.Duration
	past map[string]reading // by slice
	last map[string]state.Usage
}

// reading is what was counted of one start of a task.
type reading struct {
	key    string
	at     time.Time
	cpu    time.Duration
	actors map[string]counts
}

// Sample returns what tasks use, by slice: the last sample, or another one where that is
// some seconds old. A task has a rate from its second sample on.
func (s *Sampler) Sample(ctx context.Context) map[string]state.Usage {
	now := time.Now()
	if !s.at.IsZero() && now.Sub(s.at) < s.wait {
		return s.last
	}
	past := map[string]reading{}
	last := map[string]state.Usage{}
	for _, t := range s.Tasks(ctx) {
		was := s.past[t.Slice]
		if was.key != t.Key {
			was = reading{}
		}
		is, used := s.measure(ctx, t, was)
		past[t.Slice] = is
		last[t.Slice] = used
	}
	s.past, s.last, s.at = past, last, now
	s.wait = max(pace, costRatio*min(time.Since(now), time.Second))
	return last
}

func (s *Sampler) measure(ctx context.Context, t Task, was reading) (reading, state.Usage) {
	is := reading{key: t.Key, at: time.Now()}
	var used state.Usage
	span := is.at.Sub(was.at).Seconds()
	if p, ok := processes(t); ok {
		is.cpu, used.Memory = p.cpu, p.memory
		if was.key != "" && p.cpu >= was.cpu {
			used.CPU = (p.cpu - was.cpu).Seconds() / span
		}
	}
	if t.TPU {
		used.Duty = s.chips.duty(ctx)
	}
	if t.Actors != "" {
		is.actors = s.scrape.counts(ctx, t.Actors)
		used.Actors = rates(was.actors, is.actors, span)
	}
	return is, used
}
