package rollout

import "github.com/fray-ml/fray/proposal"

// refusedMeanwhile says what values that became known in the middle of an apply
// would have destroyed.
func (r *Rollout) refusedMeanwhile() error {
	last := r.Executor.Last()
	if last == nil || r.Stopping {
		return nil
	}
	err := proposal.ShowBlocked(r.Terminal, r.Loaded, last)
	if err != nil {
		r.Terminal.Warn("everything else of this plan was done")
	}
	return err
}
