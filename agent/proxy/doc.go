// Package proxy passes the cluster API on to the controller that leads, so that tasks
// have one address for as long as they run. It reads no message and checks no token:
// the controller does.
//
// It leaves out how the leader is found; see clusterapi/dial. Start with [NewServer].
package proxy
