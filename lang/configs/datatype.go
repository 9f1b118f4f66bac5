package configs

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/language"
)

// ReservationDataType is the type of data "reservation".
func ReservationDataType() cty.Type {
	return cty.Object(map[string]cty.Type{
		"name": cty.String, "provider": cty.String, "tpu": cty.String, "gpu": cty.String, "cpu": cty.Number, "memory": cty.Number,
		"preemptible": cty.Bool, "min": cty.Number, "max": cty.Number,
		"slices": cty.List(cty.String), "allocated": cty.Number, "free": cty.Number,
	})
}

// OfferType is the type of one offer of data "accelerators".
func OfferType() cty.Type {
	return cty.Object(map[string]cty.Type{
		"type": cty.String, "generation": cty.String, "chips": cty.Number, "hosts": cty.Number,
		"chips_per_host": cty.Number, "topology": cty.String,
		"zones": cty.List(cty.Object(map[string]cty.Type{
			"zone": cty.String, "per_hour": cty.Number, "spot_per_hour": cty.Number,
			"per_chip_hour": cty.Number, "spot_per_chip_hour": cty.Number,
		})),
	})
}

// AcceleratorsType is the type of data "accelerators".
func AcceleratorsType() cty.Type {
	return cty.Object(map[string]cty.Type{"types": cty.List(cty.String), "offers": cty.List(OfferType())})
}

// DataAttributes are what a reference to data of a kind can ask for.
func DataAttributes(kind language.DataKind) []string {
	switch kind {
	case language.DataOutputs:
		return []string{"values"}
	case language.DataReservation:
		return slices.Sorted(maps.Keys(ReservationDataType().AttributeTypes()))
	case language.DataAccelerators:
		return slices.Sorted(maps.Keys(AcceleratorsType().AttributeTypes()))
	}
	return nil
}
