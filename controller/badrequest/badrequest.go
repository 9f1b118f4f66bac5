// Package badrequest makes the gRPC statuses of requests of the cluster API that
// cannot be carried out as they are: their message is for people, and their
// details name each wrong field for programs. It finds no mistakes itself.
package badrequest

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/schema"
)

// Of is the status of a request with mistakes: all of them, each with its field.
// It is NOT_FOUND where each of them names an object that does not exist, and else
// INVALID_ARGUMENT.
func Of(mistakes ...request.Mistake) error {
	code := codes.NotFound
	detail := &errdetails.BadRequest{}
	lines := make([]string, 0, len(mistakes))
	for _, m := range mistakes {
		if !m.Missing {
			code = codes.InvalidArgument
		}
		detail.FieldViolations = append(detail.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: m.Path, Description: m.Detail, Reason: reasonOf(m.Summary),
		})
		lines = append(lines, m.String())
	}
	return withDetail(code, lines, detail)
}

// reasonOf is a summary as an identifier: "ZONE_MISSING".
func reasonOf(summary string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, summary)
}

// Fields is INVALID_ARGUMENT with descriptions by field, nil for none.
func Fields(wrong map[string]string) error {
	if len(wrong) == 0 {
		return nil
	}
	var lines []string
	detail := &errdetails.BadRequest{}
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		lines = append(lines, path+": "+wrong[path])
		detail.FieldViolations = append(detail.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: path, Description: wrong[path]})
	}
	return withDetail(codes.InvalidArgument, lines, detail)
}

func withDetail(code codes.Code, lines []string, detail *errdetails.BadRequest) error {
	st := status.New(code, strings.Join(lines, "\n"))
	if detailed, err := st.WithDetails(detail); err == nil {
		st = detailed
	}
	return st.Err()
}

// NotFound is the status of a request for an object that does not exist. It
// suggests the candidate with the nearest name.
func NotFound(kind, name string, candidates []string) error {
	if near := schema.Nearest(name, candidates); near != "" {
		return status.Errorf(codes.NotFound, "there is no %s %q; did you mean %q?", kind, name, near)
	}
	return status.Errorf(codes.NotFound, "there is no %s %q", kind, name)
}
