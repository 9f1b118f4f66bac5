package check

import (
	"encoding/json"
	"regexp"

	"cloud.google.com/go/auth/credentials"
)

// identity is who the calls are made as.
type identity struct {
	text   string // for a message
	member string // for a binding of IAM
}

// who is the identity of the application default credentials, as far as they
// state themselves: those of a person do not.
func (c *checker) who() identity {
	unknown := identity{text: "the account of these credentials", member: "user:YOU@EXAMPLE.COM"}
	if c.config.Endpoint != "" {
		return unknown
	}
	found, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"}})
	if err != nil {
		return unknown
	}
	return identityOf(found.JSON(), unknown)
}

// identityOf reads the account from a credentials file.
func identityOf(file []byte, unknown identity) identity {
	var said struct {
		Email        string `json:"client_email"`
		Impersonated string `json:"service_account_impersonation_url"`
	}
	if json.Unmarshal(file, &said) != nil {
		return unknown
	}
	if found := regexp.MustCompile(`serviceAccounts/([^/:]+):`).FindStringSubmatch(said.Impersonated); found != nil {
		said.Email = found[1]
	}
	if said.Email == "" {
		return unknown
	}
	return identity{text: said.Email, member: "serviceAccount:" + said.Email}
}
