package decode

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// rayProvider decodes the provider block of a Ray cluster.
func rayProvider(e *Decoder, b *configs.Block) schema.Provider {
	p := schema.Provider{
		Name:         schema.ProviderRay,
		Address:      eval.Get(e, nil, b.Attr("address"), rayAddress, ""),
		RayNamespace: eval.Get(e, nil, b.Attr("namespace"), as.NotEmpty, ""),
	}
	if file := eval.Get(e, nil, b.Attr("token_file"), as.NotEmpty, ""); file != "" {
		p.TokenFile = e.Absolute(file)
	}
	return p
}

// rayAddress converts the address of a dashboard to "http://HOST:PORT".
func rayAddress(v cty.Value) (string, error) {
	text, err := as.NotEmpty(v)
	if err != nil {
		return "", err
	}
	whole := text
	if !strings.Contains(whole, "://") {
		whole = "http://" + whole
	}
	u, err := url.Parse(whole)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("%q is not the address of Ray's dashboard: write it as http://HOST:8265, which ray start prints", text)
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), nil
}

// checkRay reports what only a cloud has.
func checkRay(e *Decoder, b *configs.Block) {
	if x := b.Attr("accelerators"); x != nil && !e.Options.Local {
		e.ErrorAt(x.Range, "Not on Ray", "Alternatives are tried by the health of zones, and the provider ray has none: write the one that the cluster has, as tpu or as a gpu block.")
	}
	for _, name := range append([]string{"zones", "regions", "machine_type", "disk"}, cloudNames()...) {
		if x := b.Attr(name); x != nil && !e.Options.Local {
			e.ErrorAt(x.Range, "Not on Ray", fmt.Sprintf("The provider ray has no %s: Ray chooses among the nodes that it has. Remove it, or choose another provider.", name))
		}
	}
}
