package rollout

// finishingSoftly is what a change says at the first Ctrl-C.
const finishingSoftly = "Interrupted: starting nothing new, finishing what is under way, saving. Again to leave at once."

// leavingAtOnce is what it says at the second, with the verb that picks up.
func leavingAtOnce(verb string) string {
	return "Leaving at once. The next fray " + verb + " picks up from what it finds."
}

// interrupted is what is said at the first Ctrl-C.
func (r *Rollout) interrupted() string {
	if r.handedOver.Load() {
		return "Interrupted: leaving the change to the controller."
	}
	return finishingSoftly
}
