package accelerators

import "github.com/fray-ml/fray/schema"

// Query chooses among what a provider offers; what is zero does not.
type Query struct {
	Provider   schema.ProviderName
	Generation string // of TPUs
	GPU        string // type of GPUs; "" with a Generation: no GPUs
	MinChips   int    // of a slice: TPU chips, or GPUs of a machine
	MaxChips   int
	Zones      []string
	Offers     []schema.Market // of the provider, in place of the built-in table
}

// Offer is a TPU type of a provider.
type Offer struct {
	Shape
	Zones []PricedZone
}

// PricedZone is where an offer holds, and what an hour of one chip is estimated
// to cost there in US dollars at least, on demand and preemptible; 0 is not
// known, or free.
type PricedZone struct {
	Zone     string
	OnDemand float64
	Spot     float64
}
