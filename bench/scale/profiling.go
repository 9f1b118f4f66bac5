package scale

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profiling writes the profiles of a process, one after another.
type profiling struct {
	dir   string // "": none are written
	count int
	file  *os.File
}

// next ends the CPU profile that is being written, with a profile of the heap beside it,
// and begins another one.
func (p *profiling) next() error {
	if p.dir == "" {
		return nil
	}
	if err := p.end(); err != nil {
		return err
	}
	p.count++
	var err error
	if p.file, err = os.Create(p.path("cpu")); err != nil {
		return err
	}
	return pprof.StartCPUProfile(p.file)
}

func (p *profiling) end() error {
	if p.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	heap, err := os.Create(p.path("heap"))
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(heap), heap.Close(), p.file.Close())
}

func (p *profiling) path(kind string) string {
	return filepath.Join(p.dir, fmt.Sprintf("%d-%d.%s", os.Getpid(), p.count, kind))
}
