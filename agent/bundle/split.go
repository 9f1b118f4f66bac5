package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// cuts are the places where an archive is cut into parts. The parts' bytes are the
// bundle's, whose digest is part of every job's: to change the usual cuts is to
// change the digest of every project that is larger than min.
type cuts struct {
	min, max int  // bytes of the archive in a part but the last, before compression
	bits     uint // between min and max every 2^bits bytes, on average
}

// usualCuts give parts of 12 MiB of files on average: large against a request,
// and small enough that a few fit into memory. A project of up to 8 MiB is
// always one part.
func usualCuts() cuts { return cuts{min: 8 << 20, max: 16 << 20, bits: 22} }

// window is how many bytes before a cut decide about it.
const window = 64

// splitter compresses what it is given into zstd frames, and begins a new one
// where the last bytes hash to a certain value (content-defined chunking with a
// gear hash, as in FastCDC): so what is inserted or removed in one place moves
// no cut beyond the next.
type splitter struct {
	cuts    cuts
	emit    func(frame []byte) error
	emitErr error

	gear  [256]uint64
	hash  uint64 // of the last window bytes
	size  int    // bytes of the archive in this frame
	frame bytes.Buffer
	z     *zstd.Encoder // nil between two frames
}

func newSplitter(c cuts, emit func([]byte) error) *splitter {
	s := &splitter{cuts: c, emit: emit}
	for i := range s.gear {
		sum := sha256.Sum256([]byte{byte(i)})
		s.gear[i] = binary.LittleEndian.Uint64(sum[:])
	}
	return s
}

// Write takes the next bytes of the archive.
func (s *splitter) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, cut := s.reach(p[written:])
		if err := s.compress(p[written : written+n]); err != nil {
			return written, err
		}
		written += n
		if cut {
			if err := s.Close(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// reach is how many of the next bytes belong to this frame, and whether they
// end it.
func (s *splitter) reach(p []byte) (n int, cut bool) {
	for n = max(0, s.cuts.min-window-s.size); n < len(p); n++ {
		s.hash = s.hash<<1 + s.gear[p[n]]
		size := s.size + n + 1
		if size == s.cuts.max || size >= s.cuts.min && s.hash>>(64-s.cuts.bits) == 0 {
			return n + 1, true
		}
	}
	return len(p), false
}

func (s *splitter) compress(p []byte) (err error) {
	if s.z == nil {
		// A new one for each frame, one block at a time and a fixed level: the
		// bytes must follow from the frame's content alone.
		s.z, err = zstd.NewWriter(&s.frame, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
		if err != nil {
			return err
		}
	}
	s.size += len(p)
	_, err = s.z.Write(p)
	return err
}

// Close ends the frame and emits it.
func (s *splitter) Close() error {
	if s.z == nil {
		return nil
	}
	err := s.z.Close()
	if err == nil && s.emitErr == nil {
		err = s.emit(s.frame.Bytes())
		s.emitErr = err
	}
	s.z, s.size = nil, 0
	s.frame.Reset()
	return err
}
