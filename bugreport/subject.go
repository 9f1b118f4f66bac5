package bugreport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// subject is the stack that a report is of, as far as it can be opened.
type subject struct {
	options Options

	site  stack.Site
	stack *stack.Stack
	doc   *state.Document // nil: it cannot be read
	raw   []byte          // the state as it is stored
	// loaded is the stack for packages that need all of it; nil where the state cannot be read.
	loaded *configuration.Loaded

	files    map[string][]byte // of the configuration
	filesErr error
	unread   map[string]bool // of those, which cannot be parsed
	secrets  []string
}

// declaredSubject knows what the files and the environment have, which need no store.
func declaredSubject(o Options) *subject {
	s := &subject{options: o}
	s.files, s.filesErr = configurationFiles([]string{o.Dir}, o.Configuration.Given)
	found := declaredSecrets(s.files, o.Configuration.Given, os.Environ())
	s.unread, s.secrets = found.unread, append(found.secrets, environmentSecrets(os.Environ())...)
	return s
}

// open opens what can be opened, and learns all secrets.
func (s *subject) open(ctx context.Context, into *sink) error {
	paths := []string{s.options.Dir}
	s.secrets = slices.Clip(s.secrets)
	if s.filesErr != nil {
		into.note("the files of the configuration: %v", s.filesErr)
	}
	quiet, printed := silent()
	site, err := configuration.LocateSite(quiet, paths, s.options.Configuration)
	if err != nil {
		return fmt.Errorf("find the stack: %w", printedError(err, printed))
	}
	s.site = site
	st, err := stack.Open(ctx, site, false)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	s.stack = st
	object, rawErr := st.Store.Get(ctx, store.StateKey)
	doc, err := st.Load(ctx)
	if rawErr == nil {
		s.raw = object.Data
	}
	var sealer schema.Sealer
	if doc != nil && err == nil {
		s.doc = doc
		sealer, err = st.Sealer(ctx, doc, false)
		if err != nil {
			into.note("the key of the stack: %v", err)
		}
		s.loaded = &configuration.Loaded{
			Paths: paths, Bundles: map[string]string{}, Config: &schema.Config{}, Stack: st, Document: doc, Site: site, Desired: doc.Desired, Sealer: sealer,
		}
		err = nil
	}
	if keys, keyErr := st.Keys.Open(ctx); keyErr == nil {
		s.secrets = append(s.secrets, keyTexts(keys)...)
		if key, keyErr := state.KeyOf(keys); keyErr == nil && sealer == nil {
			sealer = key
		}
	}
	s.learn(ctx, sealer)
	into.redact = newRedactor(s.secrets)
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	return nil
}

// learn learns the secrets that documents of the store have sealed.
func (s *subject) learn(ctx context.Context, sealer schema.Sealer) {
	documents := [][]byte{s.raw}
	if s.doc != nil {
		if text, err := json.Marshal(s.doc); err == nil {
			documents = append(documents, text)
		}
	}
	if assigned, err := s.stack.Store.List(ctx, store.AssignPrefix); err == nil {
		for _, a := range assigned[:min(len(assigned), maxObjects)] {
			if o, err := s.stack.Store.Get(ctx, a.Key); err == nil {
				documents = append(documents, o.Data)
			}
		}
	}
	for _, d := range documents {
		s.secrets = append(s.secrets, unseal(d, sealer)...)
	}
}

// errNoStore states why collectors that need the store have nothing.
var errNoStore = errors.New("the store was not opened")

// silent is a terminal that keeps what is printed.
func silent() (*terminal.Terminal, *bytes.Buffer) {
	var printed bytes.Buffer
	a := terminal.New(strings.NewReader(""), &printed, &printed)
	a.NoColor = true
	return a, &printed
}

// printedError is an error with what was printed of it: diagnostics are reported by printing them.
func printedError(err error, printed *bytes.Buffer) error {
	if errors.Is(err, terminal.ErrReported) {
		return errors.New(strings.Join(strings.Fields(printed.String()), " "))
	}
	return err
}

// collectors are those of everything but the stack itself.
func (s *subject) collectors() []collector {
	all := []collector{
		{"versions", s.versions}, {"state", s.state}, {"store", s.store}, {"events", s.events}, {"status", s.status}, {"plan", s.plan},
		{"agents", s.agents}, {"local agents", s.localAgents}, {"logs", s.logs}, {"controller", s.controller},
	}
	if s.options.IncludeConfig {
		all = append(all, collector{"configuration", s.configuration})
	}
	return all
}
