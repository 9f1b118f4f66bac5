package bugreport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/terminal"
)

// Options are what a report is of, and where it goes.
type Options struct {
	Configuration configuration.Options
	Dir           string
	Out           string // "": a file named by the time
	IncludeConfig bool
	List          bool          // only list what would be in it
	Yes           bool          // do not ask
	Timeout       time.Duration // of each collector
	Logs          int           // bytes of each task's log
}

// report is a report that is being made.
type report struct {
	Options

	at       time.Time
	sections []section
	files    []file
	left     []string // files that did not fit
}

// Run collects a report, lists what is in it and writes it once that is approved.
func Run(ctx context.Context, a *terminal.Terminal, o Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r := &report{Options: o, at: time.Now()}
	path := o.Out
	if path == "" {
		path = "fray-bug-report-" + r.at.UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	if !o.List {
		if err := writable(path); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.Stderr, "Collecting; each part takes at most %s …\n", o.Timeout)
	redact := r.collect(ctx)
	if ctx.Err() != nil {
		return terminal.Interrupted(ctx, context.Cause(ctx))
	}
	if err := r.addManifest(redact); err != nil {
		return err
	}
	if err := r.print(a.Stdout); err != nil {
		return fmt.Errorf("list what is in the report, which was not written: %w", err)
	}
	if o.List {
		return nil
	}
	if err := approve(ctx, a, path, o.Yes); err != nil {
		return err
	}
	data, err := pack(r.files, r.at)
	if err != nil {
		return err
	}
	if err := durable.WriteNew(path, data, 0o600); err != nil {
		return fmt.Errorf("write the report to %s: %w; name a place with enough room by --out", path, err)
	}
	fmt.Fprintf(a.Stdout, "\nWrote %s (%s). Read it before you hand it on: secrets of shapes that fray does not know stay in logs.\n", path, size(len(data)))
	return nil
}

// writable rejects a place that a report cannot be written to, before anything is collected.
func writable(path string) error {
	if !strings.HasSuffix(path, ".tar.gz") && !strings.HasSuffix(path, ".tgz") {
		return fmt.Errorf("--out=%s: a report is an archive; name a file that ends with .tar.gz", path)
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already; name another file with --out", path)
	}
	if err := unix.Access(filepath.Dir(path), unix.W_OK); err != nil {
		return fmt.Errorf("a report cannot be written to %s: %w; name another place with --out", filepath.Dir(path), err)
	}
	return nil
}

// approve asks whether the report is to be written.
func approve(ctx context.Context, a *terminal.Terminal, path string, yes bool) error {
	if yes {
		return nil
	}
	unasked := errors.New("no terminal to ask whether to write it; look at it with --list and use --yes")
	if a.Stdin == nil {
		return unasked
	}
	fmt.Fprintf(a.Stderr, "\nWrite this to %s? It stays on this machine. Only \"yes\" is accepted: ", path)
	line, err := a.ReadLine(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(a.Stderr)
		return terminal.Interrupted(ctx, err)
	case strings.TrimSpace(line) == "yes":
		return nil
	case err != nil && line == "":
		fmt.Fprintln(a.Stderr)
		return unasked
	}
	return errors.New("not approved; nothing was written")
}

// collect runs all collectors: first that of the stack, whose secrets the others need, then these at once.
func (r *report) collect(ctx context.Context) *redactor {
	s := declaredSubject(r.Options)
	next := *s // of its own, since one that is given up goes on
	opened, ended := r.one(ctx, collector{"stack", next.open}, newRedactor(s.secrets))
	if ended {
		s = &next
	}
	redact := newRedactor(s.secrets)
	opened.Problem = redact.text(opened.Problem)
	r.sections = append(r.sections, opened)
	all := s.collectors()
	sections := make([]section, len(all))
	var running sync.WaitGroup
	for i, c := range all {
		running.Go(func() { sections[i], _ = r.one(ctx, c, redact) })
	}
	running.Wait()
	r.sections = append(r.sections, sections...)
	total := 0
	for _, part := range r.sections {
		for _, f := range part.Files {
			if total+len(f.data) > maxTotal {
				r.left = append(r.left, f.Name)
				continue
			}
			total += len(f.data)
			r.files = append(r.files, f)
		}
	}
	return redact
}

// collector collects a part of a report. It returns what it could not collect as an error.
type collector struct {
	name string
	run  func(ctx context.Context, into *sink) error
}

// one runs a collector, which fails or is given up without an effect on others, and reports whether it ended.
func (r *report) one(ctx context.Context, c collector, redact *redactor) (found section, ended bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("it took more than %s", r.Timeout))
	defer cancel()
	into := &sink{redact: redact, files: map[string]file{}}
	began := time.Now()
	outcome := make(chan error, 1)
	go func() {
		defer func() {
			if problem := recover(); problem != nil { // one that meets damaged data must not take the report along
				outcome <- fmt.Errorf("the collector failed: %v", problem)
			}
		}()
		outcome <- c.run(ctx, into)
	}()
	var err error
	select {
	case err = <-outcome:
		ended = true
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	found = section{Name: c.name, Took: time.Since(began).Round(time.Millisecond).String()}
	files, notes := into.close()
	if err != nil {
		notes = append(notes, redact.text(err.Error()))
	}
	found.Files, found.Problem = files, strings.Join(notes, "; ")
	return found, ended
}

// addManifest adds the list of files, and of what is missing.
func (r *report) addManifest(redact *redactor) error {
	text := struct {
		At       time.Time `json:"at"`
		Sections []section `json:"sections"`
		Files    []file    `json:"files"`
		Left     []string  `json:"left_out,omitempty"`
	}{r.at.UTC(), r.sections, r.files, r.left}
	data, err := json.MarshalIndent(text, "", "  ")
	if err != nil {
		return err
	}
	masked, _ := redact.bytes(append(data, '\n'))
	r.files = slices.Insert(r.files, 0, file{Name: "manifest.json", Bytes: len(masked), data: masked})
	return nil
}

// print lists what is in the report.
func (r *report) print(w io.Writer) error {
	files := slices.SortedFunc(slices.Values(r.files), func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	total, masked := 0, 0
	var out bytes.Buffer
	fmt.Fprintf(&out, "%10s  %6s  %s\n", "SIZE", "MASKED", "FILE")
	for _, f := range files {
		total, masked = total+f.Bytes, masked+f.Masked
		note, places := "", "-"
		if f.Note != "" {
			note = " (" + f.Note + ")"
		}
		if f.Masked > 0 {
			places = fmt.Sprint(f.Masked)
		}
		fmt.Fprintf(&out, "%10s  %6s  %s%s\n", size(f.Bytes), places, f.Name, note)
	}
	fmt.Fprintf(&out, "\n%s, %s before compression; secrets were masked in %s.\n", terminal.Counted(len(files), "file", "files"), size(total),
		terminal.Counted(masked, "place", "places"))
	for _, s := range r.sections {
		if s.Problem != "" {
			fmt.Fprintf(&out, "Missing of %s: %s\n", s.Name, oneLine(s.Problem))
		}
	}
	if len(r.left) > 0 {
		fmt.Fprintf(&out, "Left out, since a report has at most %s: %s\n", size(maxTotal), strings.Join(r.left, ", "))
	}
	if !r.IncludeConfig {
		fmt.Fprintf(&out, "Configuration files are not in it; --include-config adds them.\n")
	}
	_, err := w.Write(out.Bytes())
	return err
}

// oneLine is a text on one line, without what a terminal would act on.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return ' '
		}
		return c
	}, text)
}
