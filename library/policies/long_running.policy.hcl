variable "long_running_hours" {
  description = "hours after which a job is not to be replaced or deleted"
  type        = number
  default     = 24
}

variable "long_running_actions" {
  description = "the actions that are denied: add \"restart\" to keep processes as well"
  type        = list(string)
  default     = ["replace", "delete"]
}

variable "long_running_overriders" {
  description = "users who may override the policy long_running"
  type        = list(string)
  default     = ["*"]
}

policy "long_running" {
  description = "what has run for long is not replaced or deleted by accident"

  rule {
    for_each      = [for c in plan.changes : c if contains(var.long_running_actions, c.action) && c.status == "running"]
    condition     = each.value.ran_seconds < var.long_running_hours * 3600
    error_message = "${each.value.address} has run for ${floor(each.value.ran_seconds / 3600)} hours, and this plan would ${each.value.action} it${length(each.value.forced_by) > 0 ? ", because of ${join(", ", each.value.forced_by)}" : ""}. Check that its last checkpoint is recent."
  }

  override {
    users = var.long_running_overriders
  }
}
