package profile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of github.com/google/pprof/blob/main/proto/profile.proto that stacks are made of.
// The library for it compiles patterns for formats of older times in each process, before main
// begins.
const (
	profileSampleType int = 1
	profileSample     int = 2
	profileLocation   int = 4
	profileFunction   int = 5
	profileString     int = 6

	valueTypeUnit int = 2

	sampleLocation int = 1
	sampleValue    int = 2

	locationID   int = 1
	locationLine int = 4
	lineFunction int = 1

	functionID   int = 1
	functionName int = 2
)

// maxUnpacked bounds what a profile is when it is unpacked.
const maxUnpacked = 1 << 30

var errPprof = errors.New("it is no message of pprof")

// readPprof takes the last type of samples, as pprof does: of a heap the bytes in use, of
// the processor its time.
func readPprof(data []byte) (Graph, error) {
	g, err := pprofGraph(data)
	if err != nil {
		return Graph{}, fmt.Errorf("read a pprof profile: %w", err)
	}
	return g, nil
}

func pprofGraph(data []byte) (Graph, error) {
	data, err := unpacked(data)
	if err != nil {
		return Graph{}, err
	}
	p := pprofMessage{lines: map[uint64][]uint64{}, names: map[uint64]uint64{}}
	if err := eachField(data, p.take); err != nil {
		return Graph{}, err
	}
	if len(p.units) == 0 {
		return Graph{}, errors.New("it has no type of samples")
	}
	out := Graph{}
	if out.Unit, err = p.text(p.units[len(p.units)-1]); err != nil {
		return Graph{}, err
	}
	scale := 1.0
	if out.Unit == "nanoseconds" {
		out.Unit, scale = "seconds", 1e-9
	}
	for _, sample := range p.samples {
		if len(sample.values) != len(p.units) {
			return Graph{}, fmt.Errorf("a sample has %d values of %d types", len(sample.values), len(p.units))
		}
		frames, err := p.frames(sample.locations)
		if err != nil {
			return Graph{}, err
		}
		out.Stacks = append(out.Stacks, Stack{Frames: frames, Weight: float64(int64(sample.values[len(p.units)-1])) * scale})
	}
	return out, nil
}

// unpacked is a message without its gzip, if it has any.
func unpacked(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err == nil && len(plain) > maxUnpacked {
		err = fmt.Errorf("it is larger than %d MiB", maxUnpacked>>20)
	}
	return plain, err
}

// pprofMessage is a profile as it is written: what belongs together is found by numbers.
type pprofMessage struct {
	units   []uint64            // of the types of samples, in strings
	samples []pprofSample       //
	lines   map[uint64][]uint64 // functions of a location; of inlined calls the caller is last
	names   map[uint64]uint64   // of a function, in strings
	strings []string
}

type pprofSample struct{ locations, values []uint64 }

// take takes in a field of the profile.
func (p *pprofMessage) take(f field) error {
	switch f.number {
	case profileSampleType:
		unit := uint64(0)
		err := eachField(f.bytes, func(f field) error {
			if f.number == valueTypeUnit {
				unit = f.value
			}
			return nil
		})
		p.units = append(p.units, unit)
		return err
	case profileSample:
		var s pprofSample
		err := eachField(f.bytes, func(f field) (err error) {
			switch f.number {
			case sampleLocation:
				s.locations, err = f.numbers(s.locations)
			case sampleValue:
				s.values, err = f.numbers(s.values)
			}
			return err
		})
		p.samples = append(p.samples, s)
		return err
	case profileLocation:
		return p.takeLocation(f.bytes)
	case profileFunction:
		id, name := uint64(0), uint64(0)
		err := eachField(f.bytes, func(f field) error {
			switch f.number {
			case functionID:
				id = f.value
			case functionName:
				name = f.value
			}
			return nil
		})
		p.names[id] = name
		return err
	case profileString:
		p.strings = append(p.strings, string(f.bytes))
	}
	return nil
}

func (p *pprofMessage) takeLocation(data []byte) error {
	id, functions := uint64(0), []uint64(nil)
	err := eachField(data, func(f field) error {
		switch f.number {
		case locationID:
			id = f.value
		case locationLine:
			return eachField(f.bytes, func(f field) error {
				if f.number == lineFunction && f.value != 0 {
					functions = append(functions, f.value)
				}
				return nil
			})
		}
		return nil
	})
	p.lines[id] = functions
	return err
}

// frames are the names of the functions at some locations, of which the innermost is first.
func (p *pprofMessage) frames(locations []uint64) ([]string, error) {
	var frames []string
	for _, location := range slices.Backward(locations) {
		if len(frames) >= maxDepth {
			break
		}
		functions, known := p.lines[location]
		if !known {
			return nil, fmt.Errorf("it has no location %d", location)
		}
		for _, function := range slices.Backward(functions) {
			at, known := p.names[function]
			if !known {
				return nil, fmt.Errorf("it has no function %d", function)
			}
			name, err := p.text(at)
			if err != nil {
				return nil, err
			}
			frames = append(frames, name)
		}
	}
	return frames, nil
}

func (p *pprofMessage) text(at uint64) (string, error) {
	if at >= uint64(len(p.strings)) {
		return "", fmt.Errorf("it has no text %d", at)
	}
	return p.strings[at], nil
}

// field is one of a protobuf message: a number, or bytes.
type field struct {
	number int
	value  uint64
	bytes  []byte // nil: it is a number
}

// numbers are those of a repeated field, packed or not, after some.
func (f field) numbers(before []uint64) ([]uint64, error) {
	if f.bytes == nil {
		return append(before, f.value), nil
	}
	for data := f.bytes; len(data) > 0; {
		v, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return nil, errPprof
		}
		before, data = append(before, v), data[n:]
	}
	return before, nil
}

// eachField calls take for all fields of a message that are numbers or bytes.
func eachField(message []byte, take func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errPprof
		}
		message = message[n:]
		f := field{number: int(number)}
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return errPprof
		}
		is := true
		switch kind {
		case protowire.VarintType:
			f.value, _ = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, _ = protowire.ConsumeBytes(message)
		case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
			is = false
		}
		message = message[n:]
		if is {
			if err := take(f); err != nil {
				return err
			}
		}
	}
	return nil
}
