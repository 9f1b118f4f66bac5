package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/pprof/profile"
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

// readPprof takes the last type of samples, as pprof does: of a heap the bytes in use, of
// the processor its time.
func readPprof(data []byte) (Graph, error) {
	in, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		return Graph{}, fmt.Errorf("read a pprof profile: %w", err)
	}
	if len(in.SampleType) == 0 {
		return Graph{}, errors.New("read a pprof profile: it has no type of samples")
	}
	value := len(in.SampleType) - 1
	out := Graph{Unit: in.SampleType[value].Unit}
	scale := 1.0
	if out.Unit == "nanoseconds" {
		out.Unit, scale = "seconds", 1e-9
	}
	for _, sample := range in.Sample {
		s := Stack{Weight: float64(sample.Value[value]) * scale}
		for at := len(sample.Location) - 1; at >= 0 && len(s.Frames) < maxDepth; at-- {
			lines := sample.Location[at].Line
			for _, line := range slices.Backward(lines) { // of inlined calls the caller is last
				if f := line.Function; f != nil {
					s.Frames = append(s.Frames, f.Name)
				}
			}
		}
		out.Stacks = append(out.Stacks, s)
	}
	return out, nil
}
