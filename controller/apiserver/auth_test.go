package apiserver

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/access/accesstest"
)

// Security: a rejected caller gets the reason, and the log has it.
func TestRefusesCallers(t *testing.T) {
	o := newOutpost(t)
	lease, _ := accesstest.NewLease(t, 1)
	o.Lead(lease, o.board)
	o.board.Show(1, accesstest.RunningJob("rl", "train", 2), accesstest.EndedJob("rl", "done", 1))
	mint := func(seed, stack string, at token.ID, c token.Claims) string {
		text, err := signer(t, seed, stack, at).Mint(c)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	elsewhere := token.ID{Role: token.RoleHost, Slice: "elsewhere"}
	o.signers = append(o.signers, signer(t, "e", "abc", elsewhere))
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"stack": "abc", "sub": "user", "user": "eve", "exp": time.Now().Add(time.Hour).Unix()}).
		SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, token string
		code        codes.Code
		want        string
	}{
		{"no token", "", codes.Unauthenticated, "no token"},
		{"a token that is none", "xyz", codes.Unauthenticated, "malformed"},
		{"an expired token", o.mint(t, userClaims(-time.Minute)), codes.Unauthenticated, "the token has expired"},
		{"another stack's token", mint("o", "xyz", roleOf(token.SubjectJob), jobClaims("rl", "train", 2)), codes.Unauthenticated, "another stack's"},
		{"a key that is not published", mint("o", "abc", roleOf(token.SubjectUser), userClaims(token.UserLife)), codes.Unauthenticated, "is not published"},
		{"a job that another host vouches for", mint("e", "abc", elsewhere, jobClaims("rl", "train", 2)), codes.Unauthenticated, "has no task there"},
		{"a namespace that the job is not in", o.mint(t, jobClaims("ops", "train", 2)), codes.Unauthenticated, "restart the job to give it another token"},
		{"a user by a host's key", mint("k", "abc", roleOf(token.SubjectJob), userClaims(token.UserLife)), codes.Unauthenticated, "may not sign"},
		{"algorithm none", none, codes.Unauthenticated, "not signed with the key"},
		{"replayed after the job's end", o.mint(t, jobClaims("rl", "done", 1)), codes.Unauthenticated, "the job has ended"},
		{"replayed after the attempt's end", o.mint(t, jobClaims("rl", "train", 1)), codes.Unauthenticated, "the job has ended"},
		{"a job that is forgotten", o.mint(t, jobClaims("rl", "forgotten", 1)), codes.Unauthenticated, "the job has ended"},
		{"a host's token", o.mint(t, token.Claims{Subject: token.SubjectHost, Expires: time.Now().Add(time.Hour)}), codes.PermissionDenied, "the token of a host"},
		{"a controller's token", o.mint(t, token.Claims{Subject: token.SubjectController, Expires: time.Now().Add(time.Hour)}), codes.PermissionDenied, "the token of a controller"},
		{"a relayed host's token", o.mint(t, token.Claims{Subject: token.SubjectRelayed, Key: "k", Expires: time.Now().Add(time.Hour)}), codes.PermissionDenied, "the token of a relayed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o.log.take()
			conn := o.with(t, test.token)
			_, err := poll(t, conn)
			o.wantRefused(t, err, test.code, test.want)
			stream, err := clusterapi.NewMetadataClient(conn).Watch(callContext(t), &clusterapi.WatchRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			o.wantRefused(t, err, test.code, test.want)
		})
	}
	t.Run("two tokens", func(t *testing.T) {
		ctx := metadata.AppendToOutgoingContext(callContext(t), dial.Header, "Bearer x")
		_, err := clusterapi.NewClusterClient(o.as(t, userClaims(token.UserLife))).Poll(ctx, &clusterapi.PollRequest{})
		o.wantRefused(t, err, codes.Unauthenticated, "no token")
	})
	t.Run("a user", func(t *testing.T) {
		if got, err := poll(t, o.as(t, userClaims(token.UserLife))); err != nil || got.GetUser() != "ann" {
			t.Errorf("got %v, %v; want it let in", got, err)
		}
	})
	t.Run("a job", func(t *testing.T) {
		got, err := poll(t, o.as(t, jobClaims("rl", "train", 2)))
		if err != nil || got.GetNamespace() != "rl" || got.GetJobId() != "train-id" || got.GetUser() != "bob" {
			t.Errorf("got %v, %v; want it let in as train-id in rl for bob", got, err)
		}
	})
}

// Security: a job's token holds for its own namespace and its own endpoints.
func TestRefusesOtherNamespaces(t *testing.T) {
	o := newOutpost(t)
	lease, _ := accesstest.NewLease(t, 1)
	o.Lead(lease, o.board)
	o.board.Show(1, accesstest.RunningJob("rl", "train", 1))
	job := o.as(t, jobClaims("rl", "train", 1))
	ctx := callContext(t)
	watch := func(conn *grpc.ClientConn, namespace string) error {
		s, err := clusterapi.NewMetadataClient(conn).Watch(ctx, &clusterapi.WatchRequest{Namespace: namespace})
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
	calls := []struct {
		name string
		call func(conn *grpc.ClientConn, namespace string) error
		path string
	}{
		{"list", func(c *grpc.ClientConn, ns string) error {
			_, err := clusterapi.NewClusterClient(c).ListJobs(ctx, &clusterapi.ListJobsRequest{Namespace: ns})
			return err
		}, "namespace:"},
		{"launch", func(c *grpc.ClientConn, ns string) error {
			_, err := clusterapi.NewClusterClient(c).Launch(ctx, &clusterapi.LaunchRequest{Request: &clusterapi.JobRequest{Namespace: ns}})
			return err
		}, "request.namespace:"},
		{"launch a group", func(c *grpc.ClientConn, ns string) error {
			_, err := clusterapi.NewClusterClient(c).LaunchGroup(ctx, &clusterapi.LaunchGroupRequest{Group: &clusterapi.JobGroup{Namespace: ns}})
			return err
		}, "group.namespace:"},
		{"launch in a group", func(c *grpc.ClientConn, ns string) error {
			_, err := clusterapi.NewClusterClient(c).LaunchGroup(ctx, &clusterapi.LaunchGroupRequest{Requests: []*clusterapi.JobRequest{{}, {Namespace: ns}}})
			return err
		}, "requests[1].namespace:"},
		{"reserve", func(c *grpc.ClientConn, ns string) error {
			_, err := clusterapi.NewClusterClient(c).CreateReservation(ctx, &clusterapi.CreateReservationRequest{Config: &clusterapi.ReservationConfig{Namespace: ns}})
			return err
		}, "config.namespace:"},
		{"watch", watch, "namespace:"},
	}
	for _, test := range calls {
		t.Run(test.name, func(t *testing.T) {
			o.log.take()
			o.wantRefused(t, test.call(job, "ops"), codes.PermissionDenied, test.path, `"ops"`, `"rl"`)
			for _, own := range []string{"", "rl"} {
				if err := test.call(job, own); err != nil {
					t.Errorf("in its own namespace, said as %q: %v", own, err)
				}
			}
			if err := test.call(o.as(t, userClaims(token.UserLife)), "ops"); err != nil {
				t.Errorf("a user: %v", err)
			}
		})
	}
	t.Run("register for another job", func(t *testing.T) {
		o.log.take()
		_, err := clusterapi.NewMetadataClient(job).Register(ctx, &clusterapi.RegisterRequest{JobId: "other-id"})
		o.wantRefused(t, err, codes.PermissionDenied, "job_id:", "train-id")
		if _, err := clusterapi.NewMetadataClient(job).Register(ctx, &clusterapi.RegisterRequest{JobId: "train-id"}); err != nil {
			t.Errorf("for itself: %v", err)
		}
	})
	t.Run("administration", func(t *testing.T) {
		o.log.take()
		_, err := clusterapi.NewAdminClient(job).Pause(ctx, &clusterapi.PauseRequest{})
		o.wantRefused(t, err, codes.PermissionDenied, "this is for users")
		if _, err := clusterapi.NewAdminClient(o.as(t, userClaims(token.UserLife))).Pause(ctx, &clusterapi.PauseRequest{}); err != nil {
			t.Errorf("a user: %v", err)
		}
	})
}

// Security: without TLS, with an old TLS or another certificate nothing is served.
func TestRefusesConnections(t *testing.T) {
	o := newOutpost(t)
	t.Run("plain text", func(t *testing.T) {
		conn, err := grpc.NewClient("passthrough:///"+o.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := poll(t, conn); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want it refused", err)
		}
		wantLog(t, o.log, "refused a connection", "peer=127.0.0.1:", "does not look like a TLS handshake")
	})
	t.Run("an old TLS", func(t *testing.T) {
		conn, err := tls.Dial("tcp", o.Address(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if err == nil {
			t.Errorf("TLS 1.2 was accepted; closed: %v", conn.Close())
		}
	})
	t.Run("another certificate than the lease says", func(t *testing.T) {
		other, err := dial.NewCertificate()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := dial.Open(o.Address(), dial.Fingerprint(other), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		o.log.take()
		if _, err := poll(t, conn); err == nil || !strings.Contains(err.Error(), "it is another process") {
			t.Errorf("got %v, want the server refused", err)
		}
		wantLog(t, o.log, "bad certificate")
	})
}

// Streams of hosts are for hosts.
func TestStreamsOfHosts(t *testing.T) {
	o := newOutpost(t)
	lease, _ := accesstest.NewLease(t, 1)
	o.Lead(lease, o.board)
	o.board.Show(1, accesstest.RunningJob("rl", "train", 2))
	for _, test := range []struct {
		name  string
		claim token.Claims
		code  codes.Code
	}{
		{"a host", token.Claims{Subject: token.SubjectHost, Expires: time.Now().Add(time.Hour)}, codes.OK},
		{"a relayed host", token.Claims{Subject: token.SubjectRelayed, Key: "k", Expires: time.Now().Add(time.Hour)}, codes.PermissionDenied},
		{"a user", userClaims(time.Minute), codes.PermissionDenied},
		{"a job", jobClaims("rl", "train", 2), codes.PermissionDenied},
	} {
		stream, err := clusterapi.NewHostsClient(o.with(t, o.mint(t, test.claim))).Connect(callContext(t))
		if err == nil {
			err = stream.Send(&clusterapi.HostMessages{})
		}
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != test.code {
			t.Errorf("the token of %s: got %v, want %s", test.name, err, test.code)
		}
	}
}
