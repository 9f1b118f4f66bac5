package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
)

// maxCosts is how many kinds of slices a plan prices one by one, unless all is
// to be shown.
const maxCosts = 8

// costs writes what the slices are estimated to cost: a sum, then a line for
// each kind of them. Nothing is written where nothing has a price to ask for.
func (p *printer) costs(costs []plan.Cost) {
	if len(costs) == 0 {
		return
	}
	p.print(p.paint(bold, "Estimated cost:"), " ", costSum(planchange.Total(costs)), "\n")
	p.costKinds(costs)
}

func (p *printer) costKinds(costs []plan.Cost) {
	shown := costs
	if len(costs) > maxCosts+1 && !p.verbose {
		shown = costs[:maxCosts]
	}
	for i := range shown {
		p.print("  ", costLine(&shown[i]), ".\n")
	}
	if rest := costs[len(shown):]; len(rest) > 0 {
		p.print("  ", fmt.Sprintf("%d more kinds of slices: %s.\n", len(rest), hourly(planchange.Total(rest))))
	}
}

// costSum is "$6.72–$24.96 an hour (+$3.36–$12.48 by this plan), $4,905.60–$18,220.80 a month. …".
func costSum(t planchange.CostTotal) string {
	text := hourly(t)
	if change := priceChange(t.Before, t.After); change != "" {
		text += " (" + change + ")"
	}
	if t.After.Known() {
		text += ", " + Monthly(t.After) + " a month"
	}
	return text + ". Prices: " + accelerators.PricesFrom + ", without disks and traffic; not your bill."
}

// hourly is a sum after the plan, after what is not in it.
func hourly(t planchange.CostTotal) string {
	if t.UnknownAfter == 0 {
		return Price(t.After) + " an hour"
	}
	unknown := plural(t.UnknownAfter, "slice") + " at a price that is not known"
	if !t.After.Known() {
		return unknown
	}
	return unknown + ", and " + Price(t.After) + " an hour"
}

// priceChange is what a plan adds to a price, or takes off it; "" for nothing.
func priceChange(before, after accelerators.Price) string {
	low, high := cents(after.Low-before.Low), cents(after.High-before.High)
	switch {
	case low == 0 && high == 0:
		return ""
	case low >= 0 && high >= 0:
		return "+" + Price(accelerators.Price{Low: min(low, high), High: max(low, high)}) + " by this plan"
	case low <= 0 && high <= 0:
		return "-" + Price(accelerators.Price{Low: min(-low, -high), High: max(-low, -high)}) + " by this plan"
	}
	return Price(before) + " before this plan"
}

// costLine is "1 -> 2 slices of v5litepod-16, spot in us-west4-a: 32 chips at
// $0.21–$0.78 a chip-hour, $6.72–$24.96 an hour".
func costLine(c *plan.Cost) string {
	var b strings.Builder
	b.WriteString(countedChange(c.Before.Slices, c.After.Slices, "slice") + " of " + clean(c.Type))
	for _, other := range c.Else {
		b.WriteString(", else " + clean(other.Type))
	}
	if c.Preemptible {
		b.WriteString(", spot")
	} else {
		b.WriteString(", on demand")
	}
	if c.Zone != "" {
		b.WriteString(" in " + clean(c.Zone))
	}
	b.WriteString(": ")
	if c.After.Chips > 0 {
		b.WriteString(plural(c.After.Chips, "chip"))
		if c.PerChipHour.Known() {
			b.WriteString(" at " + Price(c.PerChipHour) + " a chip-hour")
		}
		b.WriteString(", ")
	}
	switch {
	case !c.PerSliceHour.Known():
		b.WriteString("the price is not known")
	case c.Before.Slices == 0:
		b.WriteString(Price(c.After.PerHour) + " an hour")
	default:
		b.WriteString(fromTo(Price(c.Before.PerHour), Price(c.After.PerHour)) + " an hour")
	}
	b.WriteString(elsePrice(c))
	return b.String()
}

// elsePrice is what as many slices of the other alternatives cost, "" where there are none.
func elsePrice(c *plan.Cost) string {
	var known accelerators.Price
	unknown := 0
	for _, other := range c.Else {
		price := other.PerSliceHour.Times(float64(max(1, c.After.Slices)))
		switch {
		case !price.Known():
			unknown++
		case !known.Known():
			known = price
		default:
			known = accelerators.Price{Low: min(known.Low, price.Low), High: max(known.High, price.High)}
		}
	}
	which := " on the other"
	if len(c.Else) > 1 {
		which += "s"
	}
	switch {
	case len(c.Else) == 0:
		return ""
	case !known.Known():
		return "; the price" + which + " is not known"
	case unknown > 0:
		return "; " + Price(known) + which + ", as far as prices are known"
	}
	return "; " + Price(known) + which
}

// Price is an estimate as people read it: "$1.20–$1.56", or one amount where
// both ends read the same.
func Price(p accelerators.Price) string {
	low, high := planchange.Dollars(p.Low), planchange.Dollars(p.High)
	if low == high {
		return low
	}
	return low + "–" + high
}

// Monthly is what a price for an hour comes to in a month of 730 hours.
func Monthly(hour accelerators.Price) string { return Price(hour.Times(accelerators.HoursPerMonth)) }

func cents(dollars float64) float64 { return math.Round(100*dollars) / 100 }

// cost is what JSON says of all costs together.
type cost struct {
	Currency      string             `json:"currency"`
	Source        string             `json:"source"`
	Before        accelerators.Price `json:"before"`
	After         accelerators.Price `json:"after"`
	MonthBefore   accelerators.Price `json:"month_before"`
	MonthAfter    accelerators.Price `json:"month_after"`
	UnknownBefore int                `json:"unknown_before,omitempty"`
	UnknownAfter  int                `json:"unknown_after,omitempty"`
}

func costOf(costs []plan.Cost) *cost {
	t := planchange.Total(costs)
	return &cost{
		Currency: "USD", Source: accelerators.PricesFrom, Before: rounded(t.Before), After: rounded(t.After),
		MonthBefore: rounded(t.Before.Times(accelerators.HoursPerMonth)), MonthAfter: rounded(t.After.Times(accelerators.HoursPerMonth)),
		UnknownBefore: t.UnknownBefore, UnknownAfter: t.UnknownAfter,
	}
}

// roundedCost is a cost without the digits that sums of fractions leave behind.
func roundedCost(c plan.Cost) plan.Cost {
	c.PerChipHour, c.PerSliceHour = rounded(c.PerChipHour), rounded(c.PerSliceHour)
	c.Before.PerHour, c.After.PerHour = rounded(c.Before.PerHour), rounded(c.After.PerHour)
	c.Else = slices.Clone(c.Else)
	for i := range c.Else {
		c.Else[i].PerSliceHour = rounded(c.Else[i].PerSliceHour)
	}
	return c
}

func rounded(p accelerators.Price) accelerators.Price {
	const digits = 1e6
	return accelerators.Price{Low: math.Round(p.Low*digits) / digits, High: math.Round(p.High*digits) / digits}
}
