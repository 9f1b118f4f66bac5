package status

import (
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/plan/render"
)

// moneyBudgets are how the cost blocks of namespaces stand.
func moneyBudgets(v *View) []plan.MoneyBudget {
	return accounting.Budgets(&v.Doc.Desired, v.Doc.Metering, v.now)
}

// budgetTexts say it for people.
func budgetTexts(v *View) []string {
	var texts []string
	for _, b := range moneyBudgets(v) {
		text := render.MoneyBudget(&b)
		texts = append(texts, strings.ToUpper(text[:1])+text[1:])
	}
	return texts
}
