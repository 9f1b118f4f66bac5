package schema

import "slices"

// tpuZones lists the zones that are known to have a TPU generation, nil where
// nothing is known. The list is of what Google publishes and is not complete:
// a zone that stands nowhere in it is taken on trust.
func tpuZones(generation string) []string {
	switch generation {
	case "v4":
		return []string{"us-central2-b"}
	case "v5litepod":
		return []string{"europe-west4-b", "us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a"}
	case "v5p":
		return []string{"europe-west4-b", "us-central1-a", "us-east5-a"}
	case "v6e":
		return []string{"europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"}
	case "tpu7x":
		return []string{"us-central1-c"}
	}
	return nil
}

func isKnownZone(zone string) bool {
	return slices.ContainsFunc(generations(), func(g generation) bool { return slices.Contains(tpuZones(g.name), zone) })
}
