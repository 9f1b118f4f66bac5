variable "max_chips" {
  description = "chips that the jobs and reservations of a namespace may take together, by namespace; \"*\": of each other one"
  type        = map(number)
  default     = {}
}

variable "max_cost_per_month" {
  description = "dollars a month that a namespace may take at list prices, at the upper end of the estimate, by namespace; \"*\": each other one"
  type        = map(number)
  default     = {}
}

variable "budget_overriders" {
  description = "users who may override the policy budget"
  type        = list(string)
  default     = []
}

policy "budget" {
  description = "every namespace keeps to its chips and to its money"

  rule {
    for_each      = plan.by_namespace
    condition     = each.value.after.chips <= try(var.max_chips[each.key], var.max_chips["*"], each.value.after.chips) || each.value.after.chips <= each.value.before.chips
    error_message = "Namespace \"${each.key}\" would take ${each.value.after.chips} chips, and may take ${try(var.max_chips[each.key], var.max_chips["*"], 0)}. Ask for fewer, or have its budget raised."
  }

  rule {
    for_each      = plan.by_namespace
    condition     = each.value.after.cost_per_month.high <= try(var.max_cost_per_month[each.key], var.max_cost_per_month["*"], each.value.after.cost_per_month.high) || each.value.after.cost_per_month.high <= each.value.before.cost_per_month.high
    error_message = "Namespace \"${each.key}\" would cost up to ${format("$%.0f", each.value.after.cost_per_month.high)} a month, and may cost ${format("$%.0f", try(var.max_cost_per_month[each.key], var.max_cost_per_month["*"], 0))}."
  }

  rule {
    for_each      = plan.by_namespace
    condition     = each.value.after.unknown_prices == 0 || try(var.max_cost_per_month[each.key], var.max_cost_per_month["*"], null) == null
    error_message = "Namespace \"${each.key}\" would take ${each.value.after.unknown_prices} slices whose price is not known, and has a budget of money. State their price in an offer block of the provider."
  }

  override {
    users = var.budget_overriders
  }
}
