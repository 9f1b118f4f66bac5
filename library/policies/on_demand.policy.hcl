variable "max_on_demand_chips" {
  description = "chips in the cloud that may be on demand, of all that is declared"
  type        = number
  default     = 0
}

variable "on_demand_overriders" {
  description = "users who may override the policy on_demand"
  type        = list(string)
  default     = []
}

policy "on_demand" {
  description = "on-demand chips are few: what can start again runs on spot capacity"

  rule {
    condition     = plan.total.after.on_demand_chips <= var.max_on_demand_chips || plan.total.after.on_demand_chips <= plan.total.before.on_demand_chips
    error_message = "${plan.total.after.on_demand_chips} chips would be on demand, and ${var.max_on_demand_chips} may be: set preemptible = true where a job can start again."
  }

  override {
    users = var.on_demand_overriders
  }
}
