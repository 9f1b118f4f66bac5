package controller

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/schema"
)

// Limits of a registration.
const (
	maxMetadata      = 64
	maxMetadataBytes = 4 << 10
	maxRequestID     = 64
	leastTTL         = time.Second
	mostTTL          = 30 * 24 * time.Hour
)

// actorPrefix and 26 letters and digits make an actor id.
const actorPrefix = "actor-"

const actorIDSize = len(actorPrefix) + 26

// checkRegister finds all mistakes of a request that it shows by itself.
func checkRegister(r *clusterapi.RegisterRequest) error {
	wrong := map[string]string{}
	if !schema.ValidLaunchName(r.GetName()) {
		wrong["name"] = fmt.Sprintf(`%q is no name: want letters, digits and ". _ - /", at most 200 bytes`, r.GetName())
	}
	if err := checkAddress(r.GetAddress()); err != "" {
		wrong["address"] = err
	}
	size := 0
	for key, value := range r.GetMetadata() {
		size += len(key) + len(value)
	}
	if len(r.GetMetadata()) > maxMetadata || size > maxMetadataBytes {
		wrong["metadata"] = fmt.Sprintf("%d entries of %d bytes: want at most %d of %d", len(r.GetMetadata()), size, maxMetadata, maxMetadataBytes)
	}
	if r.GetTask() < 0 {
		wrong["task"] = "want the index of a task, from 0"
	}
	if ttl := r.GetTtl(); ttl != nil && (ttl.CheckValid() != nil || ttl.AsDuration() < leastTTL || ttl.AsDuration() > mostTTL) {
		wrong["ttl"] = fmt.Sprintf("want between %s and %s; leave it out for as long as the task lives", leastTTL, mostTTL)
	}
	if id := r.GetActorId(); id != "" && !validActorID(id) {
		wrong["actor_id"] = fmt.Sprintf("%q is none: give back what Register answered, or leave it out", id)
	}
	if len(r.GetRequestId()) > maxRequestID {
		wrong["request_id"] = fmt.Sprintf("want at most %d bytes", maxRequestID)
	}
	return badFields(wrong)
}

func validActorID(id string) bool {
	return len(id) == actorIDSize && strings.HasPrefix(id, actorPrefix) &&
		!strings.ContainsFunc(id[len(actorPrefix):], func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
}

func checkAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if number, portErr := strconv.Atoi(port); err != nil || host == "" || portErr != nil || number < 1 || number > 65535 || len(address) > 300 {
		return fmt.Sprintf("%q is none: want HOST:PORT", address)
	}
	return ""
}

// badFields is INVALID_ARGUMENT with what is wrong by field, nil for nothing.
func badFields(wrong map[string]string) error {
	if len(wrong) == 0 {
		return nil
	}
	var lines []string
	detail := &errdetails.BadRequest{}
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		lines = append(lines, path+": "+wrong[path])
		detail.FieldViolations = append(detail.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: path, Description: wrong[path]})
	}
	st := status.New(codes.InvalidArgument, strings.Join(lines, "\n"))
	if detailed, err := st.WithDetails(detail); err == nil {
		st = detailed
	}
	return st.Err()
}
