package state

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// chunkSize is how many values are written or read in one go by one of the
// goroutines that share a document.
const chunkSize = 256

// usualSize is about how many bytes one such value has in JSON.
const usualSize = 600

// inChunks calls do for the chunks [from, to) of n things, on all processors,
// and returns the error of the first chunk that has one.
func inChunks(n int, do func(chunk, from, to int) error) error {
	chunks := (n + chunkSize - 1) / chunkSize
	errs := make([]error, chunks)
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= chunks {
				return
			}
			errs[i] = do(i, i*chunkSize, min(n, (i+1)*chunkSize))
		}
	}
	var others sync.WaitGroup
	for range min(chunks, runtime.GOMAXPROCS(0)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// together calls all of do at once and returns the first of their errors, in
// the order of do.
func together(do ...func() error) error {
	errs := make([]error, len(do))
	var others sync.WaitGroup
	for i := range do {
		others.Go(func() { errs[i] = do[i]() })
	}
	others.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
