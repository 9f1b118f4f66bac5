package computeapi

// Warning is what a list, or the part of one scope, says of itself.
type Warning struct {
	Code    string        `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
	Data    []WarningData `json:"data,omitempty"`
}

// WarningNoResults is the code of a scope of which a page has nothing.
const WarningNoResults = "NO_RESULTS_ON_PAGE"

// WarningData is a detail: "scope", "zones/us-west4-a".
type WarningData struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// InstanceList is a page of the instances of a zone.
type InstanceList struct {
	Items         []*Instance `json:"items,omitempty"`
	NextPageToken string      `json:"nextPageToken,omitempty"`
	Warning       Warning     `json:"warning,omitzero"`
}

// InstanceTemplateList is a page of templates.
type InstanceTemplateList struct {
	Items         []*InstanceTemplate `json:"items,omitempty"`
	NextPageToken string              `json:"nextPageToken,omitempty"`
	Warning       Warning             `json:"warning,omitzero"`
}

// InstanceAggregatedList is a page of the instances of all zones, by "zones/Z".
type InstanceAggregatedList struct {
	Items         map[string]*InstancesScopedList `json:"items,omitempty"`
	NextPageToken string                          `json:"nextPageToken,omitempty"`
	Unreachables  []string                        `json:"unreachables,omitempty"`
	Warning       Warning                         `json:"warning,omitzero"`
}

// InstancesScopedList is the part of one scope.
type InstancesScopedList struct {
	Instances []*Instance `json:"instances,omitempty"`
	Warning   Warning     `json:"warning,omitzero"`
}

// InstanceGroupManagerAggregatedList is a page of the groups of all zones.
type InstanceGroupManagerAggregatedList struct {
	Items         map[string]*InstanceGroupManagersScopedList `json:"items,omitempty"`
	NextPageToken string                                      `json:"nextPageToken,omitempty"`
	Unreachables  []string                                    `json:"unreachables,omitempty"`
	Warning       Warning                                     `json:"warning,omitzero"`
}

// InstanceGroupManagersScopedList is the part of one scope.
type InstanceGroupManagersScopedList struct {
	InstanceGroupManagers []*InstanceGroupManager `json:"instanceGroupManagers,omitempty"`
	Warning               Warning                 `json:"warning,omitzero"`
}
