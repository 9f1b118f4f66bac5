// Package capacity knows where there is room: the health of zones, the slices of
// reservations and who holds them, the zones of jobs, the room on hosts for packed
// tasks, and the headroom that is held for the head of the queue. [Check] refuses
// what could never be placed.
//
// It ends and creates nothing; what follows from a lack of room is decided in
// plan/schedule. Each type holds the one before it: [ZoneHealth], [Pools], [Zones],
// [HostCapacity], [Headroom]. Start with zones.go.
package capacity
