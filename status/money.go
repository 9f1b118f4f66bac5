package status

import (
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/plan/render"
)

// moneyBudgets are how the cost blocks of namespaces stand.
func (v *View) moneyBudgets() []plan.MoneyBudget {
	return accounting.Budgets(&v.Doc.Desired, v.Doc.Metering, v.now)
}

// budgetTexts say it for people.
func (v *View) budgetTexts() []string {
	var texts []string
	for _, b := range v.moneyBudgets() {
		text := render.MoneyBudget(&b)
		texts = append(texts, strings.ToUpper(text[:1])+text[1:])
	}
	return texts
}
