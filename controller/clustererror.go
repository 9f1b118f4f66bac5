package controller

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	langrequest "github.com/fray-ml/fray/lang/request"
)

// refused is the status of a request with mistakes: all of them, each with its
// field. One that only names what is not there is NOT_FOUND.
func refused(mistakes []langrequest.Mistake) error {
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
	st := status.New(code, strings.Join(lines, "\n"))
	if detailed, err := st.WithDetails(detail); err == nil {
		st = detailed
	}
	return st.Err()
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
