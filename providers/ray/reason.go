package ray

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// whyPending says why bundles are not placed, by what the nodes have in all: nothing that ends can
// help a bundle that no node is large enough for, of which it reports false.
func whyPending(bundles []bundle, head string, nodes []node) (why string, fits bool) {
	if head != "" {
		first := maps.Clone(bundles[0])
		first[head] = 1
		if n := fitting(first, nodes); n == 0 {
			return noNode(first, nodes), false
		}
	}
	need := bundles[0] // all hosts of a slice need the same
	switch n := fitting(need, nodes); {
	case n == 0:
		return noNode(need, nodes), false
	case n < len(bundles):
		return fmt.Sprintf("%d nodes with %s are needed, and the cluster has %d", len(bundles), resources(need), n), false
	case len(bundles) == 1:
		return fmt.Sprintf("waits for a node with %s free; %s that much in all", resources(need), nodesHave(n)), true
	default:
		return fmt.Sprintf("waits for %d nodes with %s free each; %s that much in all", len(bundles), resources(need), nodesHave(n)), true
	}
}

func nodesHave(n int) string {
	if n == 1 {
		return "1 node has"
	}
	return strconv.Itoa(n) + " nodes have"
}

// fitting counts the nodes that are large enough for a bundle.
func fitting(need bundle, nodes []node) int {
	count := 0
	for _, n := range nodes {
		fits := true
		for name, amount := range need {
			fits = fits && n.Total[name] >= amount
		}
		if fits {
			count++
		}
	}
	return count
}

// noNode says what no node has, and the most that one has of it.
func noNode(need bundle, nodes []node) string {
	if len(nodes) == 0 {
		return "no node is alive"
	}
	text := "no node has " + resources(need)
	var most []string
	for _, name := range slices.Sorted(maps.Keys(need)) {
		largest := 0.0
		for _, n := range nodes {
			largest = max(largest, n.Total[name])
		}
		if largest < need[name] {
			most = append(most, resource(name, largest))
		}
	}
	if len(most) > 0 {
		text += "; the most that one has is " + strings.Join(most, ", ")
	}
	return text
}

func resources(b bundle) string {
	var each []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		each = append(each, resource(name, b[name]))
	}
	return strings.Join(each, " and ")
}

func resource(name string, amount float64) string {
	switch {
	case amount == aLittle && strings.HasPrefix(name, acceleratorType):
		return name
	case name == "memory":
		return schema.Bytes(amount).String() + " memory"
	}
	return strconv.FormatFloat(amount, 'f', -1, 64) + " " + name
}
