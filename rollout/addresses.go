package rollout

import (
	"github.com/fray-ml/fray/schema"
)

// AddressStrings are addresses as text.
func AddressStrings(addrs []schema.Address) []string {
	var texts []string
	for _, addr := range addrs {
		texts = append(texts, addr.String())
	}
	return texts
}
