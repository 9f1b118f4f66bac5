package client

import (
	"context"
	"net/http"

	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	htransport "google.golang.org/api/transport/http"

	"github.com/fray-ml/fray/providers/gcp/apierror"
)

// API is one of Google's services.
type API struct{ Name, Path, Scope string }

// Authorized is a transport that adds application default credentials.
// endpoint replaces the service's; "": its own.
func Authorized(ctx context.Context, a API, endpoint string) (http.RoundTripper, error) {
	transport, _, err := Dial(ctx, a, endpoint)
	return transport, err
}

// Dial is Authorized and returns the endpoint too, which depends on the credentials: they
// may be of another universe, or call for mutual TLS.
func Dial(ctx context.Context, a API, endpoint string) (http.RoundTripper, string, error) {
	options := []option.ClientOption{
		option.WithScopes(a.Scope),
		internaloption.EnableNewAuthLibrary(),
		internaloption.WithDefaultEndpointTemplate("https://" + a.Name + ".UNIVERSE_DOMAIN/" + a.Path),
		internaloption.WithDefaultMTLSEndpoint("https://" + a.Name + ".mtls.googleapis.com/" + a.Path),
		internaloption.WithDefaultUniverseDomain("googleapis.com"),
	}
	if endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint))
	}
	client, endpoint, err := htransport.NewClient(ctx, options...)
	if err != nil {
		return nil, "", apierror.CredentialsError(err)
	}
	return client.Transport, endpoint, nil
}

// Unauthorized is a transport without credentials, to what stands in for a service.
func Unauthorized() http.RoundTripper {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	own := shared.Clone()
	own.MaxIdleConnsPerHost = 100 // as the official clients have it
	return own
}
