package gcp

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/mark"
)

func (s *computeService) listErrors(r *http.Request) (proto.Message, *computeFail) {
	return &computepb.InstanceGroupManagersListErrorsResponse{Items: s.errors[zoned(r)]}, nil
}

func (s *computeService) listMembers(r *http.Request) (proto.Message, *computeFail) {
	list := &computepb.InstanceList{}
	for _, key := range slices.Sorted(maps.Keys(s.instances)) {
		if i := s.instances[key]; strings.HasPrefix(key, r.PathValue("zone")+"/") && "labels."+mark.SliceLabel+"="+i.GetLabels()[mark.SliceLabel] == r.URL.Query().Get("filter") {
			list.Items = append(list.Items, i)
		}
	}
	return list, nil
}

func (s *computeService) listTemplates(r *http.Request) (proto.Message, *computeFail) {
	list := &computepb.InstanceTemplateList{Warning: s.partial}
	for _, name := range slices.Sorted(maps.Keys(s.templates)) {
		if s.templates[name].GetProperties().GetLabels()[mark.StackLabel] != "" && r.URL.Query().Get("filter") == "properties.labels.fray-stack:*" {
			list.Items = append(list.Items, s.templates[name])
		}
	}
	return list, nil
}

// page is the keys of a page, and the token of the next.
func (s *computeService) page(r *http.Request, keys []string) (page []string, next *string) {
	slices.Sort(keys)
	from, _ := slices.BinarySearch(keys, r.URL.Query().Get("pageToken"))
	keys = keys[from:]
	if len(keys) > s.perPage {
		return keys[:s.perPage], &keys[s.perPage]
	}
	return keys, nil
}

func (s *computeService) isReachable(key string) bool {
	return !slices.Contains(s.unreachable, key[:strings.IndexByte(key, '/')])
}

func (s *computeService) listInstances(r *http.Request) (proto.Message, *computeFail) {
	list := &computepb.InstanceAggregatedList{Items: map[string]*computepb.InstancesScopedList{}}
	var keys []string
	for key, i := range s.instances {
		if i.GetLabels()[mark.StackLabel] != "" && r.URL.Query().Get("filter") == "labels.fray-stack:*" && s.isReachable(key) {
			keys = append(keys, key)
		}
	}
	keys, list.NextPageToken = s.page(r, keys)
	for _, key := range keys {
		scope := "zones/" + key[:strings.IndexByte(key, '/')]
		if list.Items[scope] == nil {
			list.Items[scope] = &computepb.InstancesScopedList{}
		}
		list.Items[scope].Instances = append(list.Items[scope].Instances, s.instances[key])
	}
	for _, zone := range s.unreachable {
		list.Items["zones/"+zone] = &computepb.InstancesScopedList{Warning: &computepb.Warning{Code: new("UNREACHABLE"), Message: new("cannot be reached")}}
	}
	list.Items["zones/empty-zone1-a"] = &computepb.InstancesScopedList{Warning: &computepb.Warning{Code: new("NO_RESULTS_ON_PAGE"), Message: new("nothing here")}}
	return list, nil
}

func (s *computeService) listGroups(r *http.Request) (proto.Message, *computeFail) {
	list := &computepb.InstanceGroupManagerAggregatedList{Items: map[string]*computepb.InstanceGroupManagersScopedList{}}
	var keys []string
	for key := range s.groups {
		if s.isReachable(key) {
			keys = append(keys, key)
		}
	}
	keys, list.NextPageToken = s.page(r, keys)
	for _, key := range keys {
		scope := "zones/" + key[:strings.IndexByte(key, '/')]
		if list.Items[scope] == nil {
			list.Items[scope] = &computepb.InstanceGroupManagersScopedList{}
		}
		list.Items[scope].InstanceGroupManagers = append(list.Items[scope].InstanceGroupManagers, s.groups[key])
	}
	for _, zone := range s.unreachable {
		list.Unreachables = append(list.Unreachables, "zones/"+zone)
	}
	return list, nil
}

// changeInstance carries out what changes a machine in place.
func (s *computeService) changeInstance(r *http.Request) (proto.Message, *computeFail) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, &computeFail{400, "invalid", err.Error()}
	}
	i := s.instances[zoned(r)]
	stale := &computeFail{412, "conditionNotMet", "fingerprint"}
	nic := i.GetNetworkInterfaces()[0]
	switch verb := r.PathValue("verb"); verb {
	case "setLabels":
		change := &computepb.InstancesSetLabelsRequest{}
		if err = protojson.Unmarshal(body, change); change.GetLabelFingerprint() != i.GetLabelFingerprint() {
			return nil, stale
		}
		i.Labels, i.LabelFingerprint = change.GetLabels(), new(i.GetLabelFingerprint()+"+")
	case "setTags":
		change := &computepb.Tags{}
		if err = protojson.Unmarshal(body, change); change.GetFingerprint() != i.GetTags().GetFingerprint() {
			return nil, stale
		}
		i.Tags = &computepb.Tags{Items: change.GetItems(), Fingerprint: new(change.GetFingerprint() + "+")}
	case "setMetadata":
		change := &computepb.Metadata{}
		if err = protojson.Unmarshal(body, change); change.GetFingerprint() != i.GetMetadata().GetFingerprint() {
			return nil, stale
		}
		change.Fingerprint = new(change.GetFingerprint() + "+")
		i.Metadata = change
	case "addAccessConfig":
		change := &computepb.AccessConfig{}
		err = protojson.Unmarshal(body, change)
		nic.AccessConfigs = append(nic.AccessConfigs, change)
	case "deleteAccessConfig":
		nic.AccessConfigs = nil
	default:
		return nil, &computeFail{501, "notImplemented", verb}
	}
	if err != nil {
		return nil, &computeFail{400, "invalid", err.Error()}
	}
	s.calls[len(s.calls)-1] = "instances." + r.PathValue("verb")
	return s.begun(r), nil
}
