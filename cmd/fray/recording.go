package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/modules"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/schema/recorded"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// recording is a configuration as it is kept in the store: sealed, under the
// hash of that. The zero recording is none.
type recording struct {
	name string
	data []byte
}

// parseRecorded is parse, of which a recording can be made.
func parseRecorded(paths []string) (*recorded.Recorder, *schema.Source, hcl.Diagnostics) {
	r := &recorded.Recorder{Modules: &modules.Installed{}}
	source, diags := r.Parser().Parse(paths)
	return r, source, diags
}

// late reports whether jobs read values that are known only after apply.
func (l *loaded) late() bool {
	return l.cfg != nil && slices.ContainsFunc(l.cfg.Desired.Jobs, func(j schema.Job) bool { return len(j.Uses) > 0 || j.HasUnknown() })
}

// errUnrecorded says why a configuration cannot be recorded.
type errUnrecorded struct{ why error }

func (e errUnrecorded) Error() string {
	return "values known only after apply stay as they are under fray watch until the next apply, since the configuration cannot be kept for it: " + e.why.Error()
}

// recording is that of a configuration in which jobs read values that are known
// only after apply; of others there is none. The error is an errUnrecorded where
// it is the configuration that cannot be recorded.
func (l *loaded) recording(targets []schema.Address) (recording, error) {
	if !l.late() || l.recorder == nil {
		return recording{}, nil
	}
	if len(l.cfg.Ephemeral) > 0 {
		return recording{}, errUnrecorded{fmt.Errorf("var.%s is ephemeral", strings.Join(l.cfg.Ephemeral, " and var."))}
	}
	c := l.recorder.Configuration()
	c.Local, c.Workspace, c.Targets = l.opts.Local, l.opts.Workspace, targets
	for _, path := range l.paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return recording{}, fmt.Errorf("record configuration: %w", err)
		}
		c.Paths = append(c.Paths, abs)
	}
	for _, g := range l.opts.Given {
		if g.Kind == schema.GivenVarFile {
			abs, err := filepath.Abs(g.Text)
			if err != nil {
				return recording{}, fmt.Errorf("record configuration: %w", err)
			}
			g.Text = abs
		}
		c.Given = append(c.Given, g)
	}
	for _, entry := range l.opts.Environ {
		if strings.HasPrefix(entry, schema.VariablePrefix) {
			c.Environ = append(c.Environ, entry)
		}
	}
	slices.Sort(c.Environ)
	return l.sealed(c)
}

func (l *loaded) sealed(c *recorded.Configuration) (recording, error) {
	archive, err := c.Encode()
	if err != nil {
		return recording{}, errUnrecorded{err}
	}
	sealed, err := l.sealer.Seal(string(archive))
	if err != nil {
		return recording{}, fmt.Errorf("record configuration: %w", err)
	}
	return recordingOf(sealed), nil
}

func recordingOf(sealed string) recording {
	sum := sha256.Sum256([]byte(sealed))
	return recording{name: hex.EncodeToString(sum[:]), data: []byte(sealed)}
}

// record keeps the configuration in the store, before the state names it, and
// returns its name; "" where there is none. One that is there is written again:
// it is as young as the apply then, so that nobody sweeps it away.
func (r *runner) record(ctx context.Context) (string, error) {
	made, err := r.l.recording(r.c.targets)
	if r.unfit(err) {
		return "", nil
	}
	if err != nil || made.name == "" {
		return "", err
	}
	if _, err := r.l.stack.store.Put(ctx, store.ConfigurationKey(made.name), made.data, store.Any); err != nil {
		return "", fmt.Errorf("record configuration: %w", err)
	}
	return made.name, nil
}

// unfit reports whether an error is that the configuration cannot be recorded,
// which is told once.
func (r *runner) unfit(err error) bool {
	_, unfit := errors.AsType[errUnrecorded](err)
	if unfit && !r.unrecorded {
		r.unrecorded = true
		r.app.warn(err.Error())
	}
	return unfit
}

// sweep removes recorded configurations that nothing names any more. What it
// leaves the next one removes.
func (r *runner) sweep(ctx context.Context, named string) {
	if err := store.SweepConfigurations(ctx, r.l.stack.store, named); err != nil && ctx.Err() == nil {
		r.app.warn(err.Error())
	}
}

// sameRecording reports whether the state has the configuration recorded as it is now.
func (r *runner) sameRecording() bool {
	made, err := r.l.recording(r.c.targets)
	_, unfit := errors.AsType[errUnrecorded](err)
	return err != nil && !unfit || made.name == r.l.doc.Recorded
}

// dataPatience is how long a controller waits for what a data block names: nothing
// else goes on meanwhile.
const dataPatience = 5 * time.Second

// opener opens recorded configurations with the stack's key.
func (s *stack) opener(sealer schema.Sealer) func(ctx context.Context, name string) (func(*state.Document) (*schema.Desired, error), error) {
	return func(ctx context.Context, name string) (func(*state.Document) (*schema.Desired, error), error) {
		object, err := s.store.Get(ctx, store.ConfigurationKey(name))
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("open the recorded configuration: %w; fray apply records it again", err)
		}
		if err != nil {
			return nil, fmt.Errorf("open the recorded configuration: %w", err)
		}
		archive, err := sealer.Open(string(object.Data))
		if err != nil {
			return nil, fmt.Errorf("open the recorded configuration: %w", err)
		}
		c, err := recorded.Decode([]byte(archive))
		if err != nil {
			return nil, err
		}
		source, err := c.Parse()
		if err != nil {
			return nil, fmt.Errorf("open the recorded configuration: %w", err)
		}
		late := &apply.Late{
			Source: source, Options: c.Options(), Sealer: sealer, Targets: c.Targets,
			Data: func() schema.Reader { return (&dataReader{here: s.site, patience: dataPatience}).anew(ctx) },
		}
		return late.Refine, nil
	}
}
