package configuration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	langrecorded "github.com/fray-ml/fray/lang/recorded"
	"github.com/fray-ml/fray/modules"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// ParseRecorded is parse, of which a recording can be made.
func ParseRecorded(paths []string) (*langrecorded.Recorder, *lang.Source, hcl.Diagnostics) {
	r := &langrecorded.Recorder{Modules: &modules.Installed{}}
	source, diags := r.Parser().Parse(paths)
	return r, source, diags
}

// late reports whether jobs read values that are known only after apply.
func (l *Loaded) late() bool {
	return l.Config != nil && slices.ContainsFunc(l.Config.Desired.Jobs, func(j schema.Job) bool { return len(j.Uses) > 0 || j.HasUnknown() })
}

// ErrUnrecorded reports why a configuration cannot be recorded.
type ErrUnrecorded struct{ why error }

func (e ErrUnrecorded) Error() string {
	return "values known only after apply stay as they are under fray watch until the next apply, since the configuration cannot be kept for it: " + e.why.Error()
}

// Recording is that of a configuration in which jobs read values that are known
// only after apply; of others there is none. The error is an errUnrecorded where
// it is the configuration that cannot be recorded.
func (l *Loaded) Recording(targets []schema.Address) (stack.Recording, error) {
	if !l.late() || l.Recorder == nil {
		return stack.Recording{}, nil
	}
	if len(l.Config.Ephemeral) > 0 {
		return stack.Recording{}, ErrUnrecorded{fmt.Errorf("var.%s is ephemeral", strings.Join(l.Config.Ephemeral, " and var."))}
	}
	c := l.Recorder.Configuration()
	if l.Config.Momentary {
		l.Begin()
		c.Moment = l.Options.Moment
	}
	c.Local, c.Workspace, c.Targets = l.Options.Local, l.Options.Workspace, targets
	for _, path := range l.Paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return stack.Recording{}, fmt.Errorf("record configuration: %w", err)
		}
		c.Paths = append(c.Paths, abs)
	}
	for _, g := range l.Options.Given {
		if g.Kind == eval.GivenVarFile {
			abs, err := filepath.Abs(g.Text)
			if err != nil {
				return stack.Recording{}, fmt.Errorf("record configuration: %w", err)
			}
			g.Text = abs
		}
		c.Given = append(c.Given, g)
	}
	for _, entry := range l.Options.Environ {
		if strings.HasPrefix(entry, eval.VariablePrefix) {
			c.Environ = append(c.Environ, entry)
		}
	}
	slices.Sort(c.Environ)
	return l.sealed(c)
}

func (l *Loaded) sealed(c *langrecorded.Configuration) (stack.Recording, error) {
	archive, err := c.Encode()
	if err != nil {
		return stack.Recording{}, ErrUnrecorded{err}
	}
	sealed, err := l.Sealer.Seal(string(archive))
	if err != nil {
		return stack.Recording{}, fmt.Errorf("record configuration: %w", err)
	}
	return stack.RecordingOf(sealed), nil
}

// dataPatience is how long a controller waits for what a data block names: nothing
// else goes on meanwhile.
const dataPatience = 5 * time.Second

// RecordingOpener opens recorded configurations with the stack's key.
func RecordingOpener(s *stack.Stack, sealer schema.Sealer) func(ctx context.Context, name string) (func(*state.Document) (*schema.Desired, error), error) {
	return func(ctx context.Context, name string) (func(*state.Document) (*schema.Desired, error), error) {
		object, err := s.Store.Get(ctx, store.ConfigurationKey(name))
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
		c, err := langrecorded.Decode([]byte(archive))
		if err != nil {
			return nil, err
		}
		source, err := c.Parse()
		if err != nil {
			return nil, fmt.Errorf("open the recorded configuration: %w", err)
		}
		late := &apply.Late{
			Source: source, Options: c.Options(), Sealer: sealer, Targets: c.Targets,
			Data: func() eval.Reader { return (&StackReader{Here: s.Site, patience: dataPatience}).Anew(ctx) },
		}
		return late.Refine, nil
	}
}
