package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ConfigurationsPrefix is of recorded configurations, sealed. Each is kept under
// the hash of what is there.
const ConfigurationsPrefix = "configurations/"

// ConfigurationKey is where the recorded configuration of a name is.
func ConfigurationKey(name string) string { return ConfigurationsPrefix + name }

// unnamedLife is how long a recorded configuration stays that nothing names: who
// has written it may not have been heard yet.
const unnamedLife = 24 * time.Hour

// SweepConfigurations removes the recorded configurations that were not
// written for a day, but for the named one. Times are the store's own. Call it
// after the state that names that one, "" for none, is saved.
func SweepConfigurations(ctx context.Context, s Store, named string) error {
	found, err := s.List(ctx, ConfigurationsPrefix, StateKey)
	if err != nil {
		return fmt.Errorf("list recorded configurations: %w", err)
	}
	var saved time.Time
	for i := range found {
		if found[i].Key == StateKey {
			saved = found[i].Updated
		}
	}
	var failed error
	for i := range found {
		name, ok := strings.CutPrefix(found[i].Key, ConfigurationsPrefix)
		if !ok || name == named || saved.Sub(found[i].Updated) < unnamedLife {
			continue
		}
		failed = errors.Join(failed, s.Delete(ctx, found[i].Key))
	}
	if failed != nil {
		return fmt.Errorf("remove old recorded configurations: %w", failed)
	}
	return nil
}
