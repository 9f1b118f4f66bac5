package bundle

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// roleVariable makes the test binary play one process of a test of several.
const roleVariable = "FRAY_BUNDLE_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(context.Background(), role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// play ships or fetches until a few parts are through, says so and waits to be
// killed.
func play(ctx context.Context, role string, args []string) error {
	d, err := store.OpenDir(args[0])
	if err != nil {
		return err
	}
	switch role {
	case "ship":
		m, err := tiny().measure(args[1])
		if err != nil {
			return err
		}
		s := Shipper{Store: stuck(d, storetest.OpUpload), packer: tiny()}
		return s.Ship(ctx, Project{Dir: args[1], Bundle: m})
	case "fetch":
		return Fetcher{Store: stuck(d, storetest.OpOpen), Keep: args[2]}.Fetch(ctx, args[1], args[3])
	}
	return fmt.Errorf("unknown role %s", role)
}

// stuck is a store that lets four parts through and blocks at the fifth.
func stuck(s store.Store, op storetest.Op) store.Store {
	passed := make(chan struct{}, 5)
	return &storetest.Faulty{Store: s, Before: func(is storetest.Op, _ string) error {
		if is != op {
			return nil
		}
		select {
		case passed <- struct{}{}:
			return nil
		default:
		}
		fmt.Println("stuck")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends, if it does not kill
		os.Exit(1)
		return nil
	}}
}
