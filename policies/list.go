package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/terminal"
)

// Listed is a policy that holds.
type Listed struct {
	Name        string              `json:"name"`
	Severity    plan.PolicySeverity `json:"severity"`
	Description string              `json:"description"`
	Source      string              `json:"source"`
	Overriders  []string            `json:"overriders"`
}

// Listed are the policies that hold, by name.
func (p *Policies) Listed() []Listed {
	found, _ := p.Findings(cty.UnknownVal(cty.DynamicPseudoType))
	all := make([]Listed, 0, len(found))
	for i := range found {
		r := &found[i]
		all = append(all, Listed{r.Name, r.Severity, r.Description, r.Source, append([]string{}, r.Overriders...)})
	}
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Print lists the policies that hold, for people.
func (p *Policies) Print(a *terminal.Terminal) error {
	all := p.Listed()
	if len(all) == 0 {
		fmt.Fprintln(a.Stdout, "No policy holds here.")
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tSEVERITY\tFROM\tOVERRIDDEN BY\tDESCRIPTION")
	for i := range all {
		by := cmp.Or(strings.Join(all[i].Overriders, ", "), "-")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", all[i].Name, all[i].Severity, all[i].Source, by, strings.Join(strings.Fields(all[i].Description), " "))
	}
	return w.Flush()
}
