package language

import "github.com/fray-ml/fray/schema"

func rayProviderType() *BlockType {
	return &BlockType{
		Name: "provider", Variant: string(schema.ProviderRay), Label: "PROVIDER",
		Doc: "slices of nodes of a Ray cluster that exists already",
		Attrs: []Attribute{
			{Name: "address", Type: "string", Required: true, Doc: "of the cluster's dashboard, such as http://127.0.0.1:8265"},
			{Name: "namespace", Type: "string", Default: "fray", Doc: "Ray's namespace for the actors of fray's jobs"},
			{Name: "token_file", Type: "string", Default: "where Ray finds it", Doc: "file with the cluster's token, relative to the configuration; without it RAY_AUTH_TOKEN, the file of RAY_AUTH_TOKEN_PATH, or ~/.ray/auth_token"},
		},
	}
}
