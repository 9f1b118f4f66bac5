package stack

import (
	"context"
	"fmt"

	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/state"
)

// Member makes this command one of any namespace, as who may write to the stack's store
// may do.
func (s *Stack) Member(ctx context.Context, doc *state.Document) (*clusterkeys.Member, error) {
	m, err := clusterkeys.Join(ctx, s.Store, doc.Stack(), UserAtHost(), s.Clock.Now(ctx))
	if err != nil {
		return nil, fmt.Errorf("call actors: %w", err)
	}
	return m, nil
}
