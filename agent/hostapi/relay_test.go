package hostapi

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/token"
)

// A host relays for hosts of its slice, and serves the controller and users otherwise.
func TestWhoMayCallAHost(t *testing.T) {
	h := &Service{slice: "a"}
	of := func(slice string) token.ID { return token.ID{Role: token.RoleHost, Slice: slice, Host: 1} }
	for _, test := range []struct {
		name   string
		claims token.Claims
		relays bool // as opposed to commands
		ok     bool
	}{
		{"a host of the slice", token.Claims{Subject: token.SubjectRelayed, Signer: of("a")}, true, true},
		{"a host of another slice", token.Claims{Subject: token.SubjectRelayed, Signer: of("b")}, true, false},
		{"a host of the slice, with its other token", token.Claims{Subject: token.SubjectHost, Signer: of("a")}, true, false},
		{"a job of the slice", token.Claims{Subject: token.SubjectJob, Signer: of("a")}, true, false},
		{"a user", token.Claims{Subject: token.SubjectUser}, true, false},
		{"a host of the slice", token.Claims{Subject: token.SubjectRelayed, Signer: of("a")}, false, false},
		{"a user", token.Claims{Subject: token.SubjectUser}, false, true},
		{"the controller", token.Claims{Subject: token.SubjectController}, false, true},
	} {
		method := clusterapi.Host_Exec_FullMethodName
		if test.relays {
			method = clusterapi.Hosts_Connect_FullMethodName
		}
		if err := h.may(test.claims, method); (err == nil) != test.ok || err != nil && status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s calls %s: %v, want it allowed: %t", test.name, method, err, test.ok)
		}
	}
}
