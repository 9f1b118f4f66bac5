package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Stack is a chain of calls, the outermost first, with its share of the profile.
type Stack struct {
	Frames []string
	Weight float64
}

// Graph is a profile as stacks.
type Graph struct {
	Unit   string // of weights: "seconds", "bytes", "count"
	Stacks []Stack
}

// Total is the sum of the weights.
func (g Graph) Total() float64 {
	sum := 0.0
	for _, s := range g.Stacks {
		sum += s.Weight
	}
	return sum
}

// maxDepth bounds the frames of a stack: recursion without end is cut.
const maxDepth = 512

// Read reads the stacks of a profile.
func Read(format Format, data []byte) (Graph, error) {
	switch format {
	case Speedscope:
		return readSpeedscope(data)
	case Pprof:
		return readPprof(data)
	case PlainText:
	}
	return Graph{}, errors.New("stacks as text have no weights")
}

// speedscope is the part of github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources
// that samplers write.
type speedscope struct {
	Shared struct {
		Frames []struct {
			Name string `json:"name"`
			File string `json:"file"`
			Line int    `json:"line"`
		} `json:"frames"`
	} `json:"shared"`
	Profiles []struct {
		Name    string    `json:"name"`
		Unit    string    `json:"unit"`
		Samples [][]int   `json:"samples"`
		Weights []float64 `json:"weights"`
	} `json:"profiles"`
}

func readSpeedscope(data []byte) (Graph, error) {
	var in speedscope
	if err := json.Unmarshal(data, &in); err != nil {
		return Graph{}, fmt.Errorf("read a speedscope profile: %w", err)
	}
	var out Graph
	for _, p := range in.Profiles {
		out.Unit = p.Unit
		for i, sample := range p.Samples {
			s := Stack{Weight: 1}
			if i < len(p.Weights) {
				s.Weight = p.Weights[i]
			}
			if len(in.Profiles) > 1 {
				s.Frames = append(s.Frames, p.Name)
			}
			for _, at := range sample[:min(len(sample), maxDepth)] {
				if at < 0 || at >= len(in.Shared.Frames) {
					return Graph{}, fmt.Errorf("read a speedscope profile: it has no frame %d", at)
				}
				f := in.Shared.Frames[at]
				name := f.Name
				if f.File != "" {
					name += " (" + f.File + ":" + strconv.Itoa(f.Line) + ")"
				}
				s.Frames = append(s.Frames, name)
			}
			out.Stacks = append(out.Stacks, s)
		}
	}
	return out, nil
}
