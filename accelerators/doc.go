// Package accelerators knows types of TPUs and GPUs: their shapes, the zones that offer them, the
// engine that makes them, and what slices cost at list prices.
//
// The tables are built in, and offers of a provider stand in place of them. The package
// asks no cloud.
//
// Start with [Parse] for shapes, [CandidateZones] for places and [EstimateOf] for prices.
package accelerators
