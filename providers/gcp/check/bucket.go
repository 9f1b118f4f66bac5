package check

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// bucketLocation is where a bucket is, as the Cloud Storage API names it.
type bucketLocation struct {
	Location string `json:"location"`     // "US-WEST4", "US", "NAM4"
	Type     string `json:"locationType"` // "region", "dual-region", "multi-region"
	Custom   struct {
		Regions []string `json:"dataLocations"`
	} `json:"customPlacementConfig"`
}

// bucket warns of a stack's bucket that is in no region of its slices.
func (c *checker) bucket(ctx context.Context) {
	if c.config.Bucket == "" {
		return
	}
	var is bucketLocation
	path := "storage/v1/b/" + url.PathEscape(c.config.Bucket) + "?fields=location,locationType,customPlacementConfig"
	if err := c.rest.get(ctx, "storage", path, &is); err != nil || is.Location == "" {
		c.passes(err)
		return
	}
	for i := range c.wishes {
		w := &c.wishes[i]
		var far []string
		dearest := egressFree
		for _, region := range w.regions() {
			if cost := is.egress(region); cost != egressFree {
				far = append(far, region)
				dearest = max(dearest, cost)
			}
		}
		if len(far) == 0 {
			continue
		}
		c.add(warningAt(w.atZones(), "Bucket is far away", fmt.Sprintf(
			"The stack's bucket %s is in %s, and slices may be in %s: what they read of it costs about %s a GiB (list price, November 2026) and takes longer, "+
				"be it checkpoints, data or the project. Keep what is large in a bucket of the slices' region, or have the slices where the bucket is.",
			c.config.Bucket, strings.ToLower(is.Location), strings.Join(far, ", "), dearest)))
	}
}

// egress is a class of prices for reading in one place what is kept in another,
// the dearer the higher.
type egress int

const (
	egressFree   egress = iota
	egressNearby        // within North America or Europe
	egressApart         // within another continent
	egressAcross        // between continents
)

// String is what a GiB costs, for data that stays within Google Cloud:
// https://cloud.google.com/storage/pricing#network-buckets
func (e egress) String() string {
	switch e {
	case egressFree:
		return "nothing"
	case egressNearby:
		return "$0.02"
	case egressApart:
		return "$0.08"
	case egressAcross:
		return "$0.05 to $0.14"
	}
	return "an unknown amount"
}

// egress is the class of reading in a region.
func (l *bucketLocation) egress(region string) egress {
	location := strings.ToLower(l.Location)
	regions := []string{location}
	for _, each := range l.Custom.Regions {
		regions = append(regions, strings.ToLower(each))
	}
	switch location { // predefined pairs of regions
	case "nam4":
		regions = []string{"us-central1", "us-east1"}
	case "eur4":
		regions = []string{"europe-north1", "europe-west4"}
	case "eur5":
		regions = []string{"europe-west1", "europe-west2"}
	case "eur7":
		regions = []string{"europe-west2", "europe-west3"}
	case "eur8":
		regions = []string{"europe-west3", "europe-west6"}
	case "asia1":
		regions = []string{"asia-northeast1", "asia-northeast2"}
	}
	if slices.Contains(regions, region) {
		return egressFree
	}
	from := regions[len(regions)-1]
	if from == "eu" {
		from = "europe"
	}
	here, _, _ := strings.Cut(region, "-")
	there, _, _ := strings.Cut(from, "-")
	here, there = continent(here), continent(there)
	switch {
	case here != there:
		return egressAcross
	case here == "us" || here == "europe":
		return egressNearby
	}
	return egressApart
}

// continent is that of the first part of a region's name.
func continent(word string) string {
	if word == "northamerica" {
		return "us"
	}
	return word
}
