package roles

// HealthCheck reports that the actor answers.
func (l *Loader) HealthCheck() bool { return true }

// HealthCheck reports that the actor answers.
func (p *Pool) HealthCheck() bool { return true }

// HealthCheck reports that the actor answers.
func (t *TrainBatches) HealthCheck() bool { return true }

// HealthCheck reports that the actor answers.
func (v *Validator) HealthCheck() bool { return true }
