package apierror

import (
	"errors"
	"fmt"
	"net/http"

	"cloud.google.com/go/auth"
)

const login = "run `gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENTIALS"

// CredentialsError is the error of a program without usable credentials.
func CredentialsError(err error) error {
	return fmt.Errorf("no usable Google credentials: %w; %s", err, login)
}

// The remedies of errors that every service may answer with.
const (
	loginAgain = "the credentials have expired or were revoked: " + login
	tryLater   = "the service has problems; try again later (https://status.cloud.google.com)"
)

// Remedy is what to do about an error that every service may answer with, however it
// was called: credentials that are not taken any more, or a failure of the service
// itself. It is "" for any other error, whose remedy depends on what was asked for.
func Remedy(err error) string {
	if token, ok := errors.AsType[*auth.Error](err); ok && !token.Temporary() {
		return loginAgain
	}
	switch status := StatusOf(err); {
	case status == http.StatusUnauthorized:
		return loginAgain
	case status >= http.StatusInternalServerError:
		return tryLater
	}
	return ""
}
