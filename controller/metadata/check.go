package metadata

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/badrequest"
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
	return badrequest.Fields(wrong)
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
