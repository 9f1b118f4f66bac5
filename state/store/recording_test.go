package store_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// TestSweepConfigurations: what is a day old and not named goes, by the store's
// own clock; what was written again is young.
func TestSweepConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		write := func(keys ...string) {
			for _, key := range keys {
				if _, err := s.Put(t.Context(), key, []byte("x"), store.Any); err != nil {
					t.Fatal(err)
				}
			}
		}
		left := func(named string) []string {
			t.Helper()
			if err := store.SweepConfigurations(t.Context(), s, named); err != nil {
				t.Fatal(err)
			}
			found, err := s.List(t.Context(), store.ConfigurationsPrefix)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, each := range found {
				names = append(names, each.Key[len(store.ConfigurationsPrefix):])
			}
			return names
		}
		write(store.ConfigurationKey("again"), store.ConfigurationKey("named"), store.ConfigurationKey("old"))
		time.Sleep(48 * time.Hour)
		if got := left("named"); len(got) != 3 {
			t.Errorf("with no state, %v are left, want all", got)
		}
		write(store.ConfigurationKey("again"), store.ConfigurationKey("young"), store.StateKey)
		if got, want := left("named"), []string{"again", "named", "young"}; !slices.Equal(got, want) {
			t.Errorf("%v are left, want %v", got, want)
		}
		time.Sleep(23 * time.Hour)
		write(store.StateKey)
		if got, want := left("young"), []string{"again", "young"}; !slices.Equal(got, want) {
			t.Errorf("nearly a day later %v are left, want %v", got, want)
		}
		time.Sleep(time.Hour)
		write(store.StateKey)
		if got := left(""); len(got) != 0 {
			t.Errorf("with none named %v are left, want none", got)
		}
	})
}
