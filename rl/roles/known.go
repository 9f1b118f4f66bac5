package roles

import (
	"context"
	"maps"
	"slices"
)

// restarted are the actors of a run that have another process than the one that is known, sorted.
func (c *Controller) restarted(now map[string]string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name, incarnation := range now {
		if known, ok := c.record.Known[name]; ok && known != incarnation && !isLate(c, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// knowAll notes the processes of all actors, before the state is set with which the run begins or goes on: a process that is
// newer has none of it.
func (c *Controller) knowAll(ctx context.Context) error {
	now, err := c.cfg.Peers.Incarnations(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Known = map[string]string{}
	maps.Copy(c.record.Known, now)
	return nil
}

// know notes the processes of actors that are about to be started. One that is not there is restarted once it is.
func (c *Controller) know(now map[string]string, names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.record.Known[name] = now[name]
	}
}

// knowNew notes the processes of actors that were not there before.
func (c *Controller) knowNew(now map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, incarnation := range now {
		if _, ok := c.record.Known[name]; !ok {
			c.record.Known[name] = incarnation
		}
	}
}
