package rollout

import (
	"context"
	"slices"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// ShipAgent puts the program into the store that hosts of a cloud start with. report
// hears of the upload; nil: it is not reported.
func ShipAgent(ctx context.Context, l *configuration.Loaded, accepted *state.Document, report release.UploadReporter) error {
	isCloud := func(p schema.Provider) bool { return p.Name == schema.ProviderGCP }
	if !slices.ContainsFunc(accepted.Desired.Providers, isCloud) || len(accepted.Desired.Jobs)+len(accepted.Desired.Reservations) == 0 {
		return nil
	}
	hosts := l.Stack.Bootstrap(ctx)
	hosts.Report = report
	if _, err := hosts.Ship(); err != nil {
		return terminal.Interrupted(ctx, err)
	}
	return nil
}
