package workspace

import (
	"context"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/outline"
)

// maxAffected is how many blocks are checked at once when others that they refer to change.
// Those beyond wait for the check of all blocks, which then begins after a short pause.
const maxAffected = 50

// stack is a directory that is checked again and again, by one goroutine.
type stack struct {
	workspace *Workspace
	dir       string
	dirty     chan struct{}
	gone      chan struct{}
	edits     atomic.Int64                    // how often it was marked
	whole     atomic.Bool                     // everything is to be checked, as files elsewhere have changed
	read      atomic.Pointer[map[string]bool] // directories of the files that the last check read

	findings *findings
	checked  outline.Directory // what the findings are of
	complete bool              // everything was checked at least once
	behind   bool              // some findings are not of checked, until everything is checked
}

func newStack(w *Workspace, dir string) *stack {
	return &stack{workspace: w, dir: dir, dirty: make(chan struct{}, 1), gone: make(chan struct{}), findings: newFindings()}
}

// mark makes the stack be checked; all of it, if files elsewhere have changed.
func (s *stack) mark(whole bool) {
	if whole {
		s.whole.Store(true)
	}
	s.edits.Add(1)
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// reads reports whether the last check read files of a directory.
func (s *stack) reads(dir string) bool {
	read := s.read.Load()
	return read != nil && (*read)[dir]
}

// finished is a check of all parts, which has run beside the loop.
type finished struct {
	run    check
	report report
}

// loop checks the stack whenever it is marked: a small one wholly, of a large one what the
// change affects, and the whole after a pause, a short one if the change affects more. A
// newer edit cancels a check of everything, unless edits have waited for one for too long.
func (s *stack) loop(ctx context.Context) {
	var (
		quiet   <-chan time.Time
		running chan finished
		current check
		edits   unchecked
	)
	defer func() {
		if running != nil {
			<-running
		}
	}()
	start := func() {
		running = s.start(current, edits.overdue(time.Now(), s.workspace.options.Patience))
		edits.begin()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.gone:
			return
		case <-s.dirty:
			v := s.workspace.view(s.dir)
			current = check{view: v, dir: v.directory(s.dir)}
			whole := s.whole.Swap(false)
			edits.add(time.Now())
			switch {
			case current.dir.Size() <= s.workspace.options.Whole:
				s.take(finished{current, current.run()})
				if running == nil {
					edits = unchecked{}
				}
			case !s.complete:
				quiet = time.After(0)
			default:
				quiet = time.After(edits.wait(time.Now(), s.affected(current, whole), s.workspace.options.Patience))
			}
		case <-quiet:
			quiet = nil
			if running == nil {
				start()
			}
		case done := <-running:
			running = nil
			switch {
			case !done.run.canceled() && !edits.behind():
				s.take(done)
				edits.end()
			case !done.run.canceled():
				s.adopt(done)
				edits.end()
				quiet = time.After(edits.wait(time.Now(), s.affected(current, false), s.workspace.options.Patience))
			case edits.behind() && quiet == nil:
				start()
			}
		}
	}
}

// start runs a check of all parts, which ends soon once the stack is marked again, unless it
// is to end in any case.
func (s *stack) start(c check, inAnyCase bool) chan finished {
	edits := s.edits.Load()
	c.canceled = func() bool {
		runtime.Gosched() // requests of the editor come first
		return !inAnyCase && s.edits.Load() != edits || s.workspace.ctx.Err() != nil
	}
	done := make(chan finished, 1)
	s.workspace.work.Go(func() { done <- finished{c, c.run()} })
	return done
}

// take publishes the outcome of a check of all parts.
func (s *stack) take(f finished) {
	s.adopt(f)
	s.publish(f.run, f.report.diags)
}

// adopt keeps the outcome of a check of all parts.
func (s *stack) adopt(f finished) {
	read := map[string]bool{}
	for path := range f.report.files {
		read[filepath.Dir(path)] = true
	}
	s.read.Store(&read)
	broken := false
	for _, file := range f.run.dir.Files {
		if file.Broken() {
			broken = true
			if f.report.valid {
				s.workspace.outlineAnew(f.run.absolute(file.Name), file)
			}
		}
	}
	if !broken || f.report.valid {
		s.findings.replace(f.run.dir, f.report.diags, nil)
		s.findings.prune(f.run.dir)
		s.checked, s.behind = f.run.dir, false
	} else if !s.complete {
		s.checked = f.run.dir // its blocks are checked once the syntax is right
	}
	s.complete = true
}

// affected checks what a change affects, and returns the pause until everything is checked.
func (s *stack) affected(c check, whole bool) time.Duration {
	broken := false
	for _, file := range c.dir.Files {
		broken = broken || file.Broken()
	}
	changed, symbols := c.dir.Changed(s.checked)
	switch {
	case broken:
	case len(changed) > maxAffected:
		s.behind = true
	case len(changed)+len(symbols) > 0:
		affected, needed, all := c.dir.Affected(changed, symbols, maxAffected)
		c.needed = needed
		s.findings.replace(c.dir, c.run().diags, affected)
		s.checked, s.behind = c.dir, s.behind || !all
	}
	if len(changed) > 0 || !whole {
		s.publish(c, s.findings.all(c.dir))
	}
	if s.behind && !broken {
		return s.workspace.options.ShortPause
	}
	return s.workspace.options.Pause
}

// publish shows diagnostics, those without a place at the beginning of the first file.
func (s *stack) publish(c check, diags hcl.Diagnostics) {
	found := map[string]hcl.Diagnostics{}
	for _, d := range diags {
		switch {
		case d.Subject != nil:
			path := c.absolute(d.Subject.Filename)
			found[path] = append(found[path], d)
		case len(c.dir.Files) > 0:
			path := c.absolute(c.dir.Files[0].Name)
			found[path] = append(found[path], d)
		}
	}
	for path := range c.versions { // files that are no part of the configuration
		if filepath.Dir(path) == s.dir && isBeside(path) && found[path] == nil {
			_, diags := load.ParseSyntax(c.disk.texts[path], c.shown(path))
			found[path] = diags
		}
	}
	s.workspace.show(s.dir, c.view, found)
}
