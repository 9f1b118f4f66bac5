package apiserver

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/caller"
)

// allowed is nil if a caller may make a call with a message, as far as the message
// alone shows: users may make all calls, jobs those within their own namespace, and
// no calls of Admin. Hosts report, and make no other calls. What a job may do with jobs that it names is
// the service's to check.
func allowed(who caller.Caller, method string, req any) error {
	forHosts := strings.HasPrefix(method, "/"+clusterapi.Hosts_ServiceDesc.ServiceName+"/")
	switch who.Kind {
	case caller.Host:
		if !forHosts {
			return status.Error(codes.PermissionDenied, "the token of a host is not for this call")
		}
		return nil
	case caller.User, caller.Job:
		if forHosts {
			return status.Error(codes.PermissionDenied, "this is for hosts")
		}
		if who.Kind == caller.User {
			return nil
		}
	case caller.Controller:
		return status.Errorf(codes.PermissionDenied, "the token of a %s is not for the cluster API", who.Kind)
	default:
		return status.Error(codes.Unauthenticated, "the caller was not authenticated")
	}
	if strings.HasPrefix(method, "/"+clusterapi.Admin_ServiceDesc.ServiceName+"/") {
		return status.Error(codes.PermissionDenied, "this is for users, and the token is a job's")
	}
	for _, n := range namespacesOf(req) {
		if n.value != "" && n.value != who.Namespace {
			return status.Errorf(codes.PermissionDenied, "%s: the token is for namespace %q, and the request for %q; leave it out to mean your own",
				n.path, who.Namespace, n.value)
		}
	}
	if r, ok := req.(*clusterapi.RegisterRequest); ok && r.GetJobId() != "" && r.GetJobId() != who.JobID {
		return status.Errorf(codes.PermissionDenied, "job_id: the token is job %s's, and only that one may register its endpoints", who.JobID)
	}
	return nil
}

// field is a field of a request and its value.
type field struct{ path, value string }

// namespacesOf are the namespaces that a request names.
func namespacesOf(req any) []field {
	switch r := req.(type) {
	case *clusterapi.LaunchRequest:
		return []field{{"request.namespace", r.GetRequest().GetNamespace()}}
	case *clusterapi.LaunchGroupRequest:
		found := []field{{"group.namespace", r.GetGroup().GetNamespace()}}
		for i, one := range r.GetRequests() {
			found = append(found, field{fmt.Sprintf("requests[%d].namespace", i), one.GetNamespace()})
		}
		return found
	case *clusterapi.CreateReservationRequest:
		return []field{{"config.namespace", r.GetConfig().GetNamespace()}}
	case interface{ GetNamespace() string }: // all others that name one
		return []field{{"namespace", r.GetNamespace()}}
	}
	return nil
}
