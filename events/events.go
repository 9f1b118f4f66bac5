package events

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// EventKinds are the kinds of events, for the help of a flag.
func EventKinds() []string {
	var names []string
	for _, k := range state.EventKinds() {
		names = append(names, string(k))
	}
	return names
}

// Filter reports whether an event is asked for.
func Filter(args, kinds []string, since time.Duration) (func(state.Event) bool, error) {
	var addrs []schema.Address
	for _, arg := range args {
		addr, err := schema.ParseAddress(arg)
		if err != nil {
			return nil, fmt.Errorf("fray events: %w", err)
		}
		addrs = append(addrs, addr) // it may be gone by now
	}
	for _, k := range kinds {
		if !slices.Contains(EventKinds(), k) {
			return nil, fmt.Errorf("--kind=%s: want one of %s", k, strings.Join(EventKinds(), ", "))
		}
	}
	began := time.Time{}
	if since > 0 {
		began = time.Now().Add(-since)
	}
	return func(e state.Event) bool {
		named := len(addrs) == 0 || slices.ContainsFunc(addrs, func(a schema.Address) bool { return a.Contains(e.Addr) })
		return named && e.At.After(began) && (len(kinds) == 0 || slices.Contains(kinds, string(e.Kind)))
	}, nil
}

// Reader reads the events of what addresses name, as Filter takes them, and of a time, with few others.
func Reader(s store.Store, args []string, since time.Duration) *store.EventReader {
	r := &store.EventReader{Store: s}
	for _, arg := range args {
		if addr, err := schema.ParseAddress(arg); err == nil {
			r.About = append(r.About, addr.String())
		}
	}
	if since > 0 {
		r.Since = time.Now().Add(-since)
	}
	return r
}

// Options are which events are printed, and how.
type Options struct {
	Wanted       func(state.Event) bool
	Follow, JSON bool
}

// Print prints events until there are no more, or, where they are followed, until ctx ends.
func Print(ctx context.Context, a *terminal.Terminal, r *store.EventReader, p Options) error {
	for {
		events, err := r.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if !p.Wanted(e) {
				continue
			}
			if err := printEvent(a, e, p.JSON); err != nil {
				return err
			}
		}
		if !p.Follow {
			return nil
		}
		timer := time.NewTimer(max(500*time.Millisecond, r.Store.WriteInterval()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

func printEvent(a *terminal.Terminal, e state.Event, asJSON bool) error {
	if asJSON {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Stdout, "%s\n", line)
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "%s  %-8s  %s%s\n", e.At.Local().Format(Time), e.Kind, About(&e), Text(&e))
	return err
}

// Time is how the times of events are shown.
const Time = "01-02 15:04:05"

// Text is what an event says, without the names that eventAbout gives.
func Text(e *state.Event) string {
	if e.Kind != state.EventDrift {
		return e.Text
	}
	return Unnamed(e.Text, e.Addr.String(), "slice "+e.Slice)
}

// Unnamed is a text behind names, of which it does without each once.
func Unnamed(text string, names ...string) string {
	for _, name := range names {
		if rest, ok := strings.CutPrefix(text, name+" "); ok {
			text = rest
			continue
		}
		text = strings.Replace(text, " of "+name+" ", " ", 1)
	}
	return text
}

// About names what an event is about, with a space behind it; "" where that
// is the stack.
func About(e *state.Event) string {
	about := ""
	if (e.Addr != schema.Address{}) {
		about = e.Addr.String() + " "
	}
	if e.Slice != "" {
		about += "slice " + e.Slice + " "
	}
	return about
}
