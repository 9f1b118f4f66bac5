variable "protected" {
  description = "addresses that only admins delete or replace, and only within the window; one without a key stands for all its instances"
  type        = list(string)
  default     = []
}

variable "admins" {
  description = "users who may do so, as ada or ada@host"
  type        = list(string)
  default     = []
}

variable "window" {
  description = "days (Mon to Sun) and hours in UTC in which it may be done; null: at any time"
  type = object({
    days = optional(list(string), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    from = number
    to   = number
  })
  default = null
}

locals {
  endangered = [
    for c in plan.changes : c if contains(["delete", "replace"], c.action) &&
    anytrue([for p in var.protected : c.address == p || startswith(c.address, "${p}[") || startswith(c.address, "${p}.")])
  ]
  is_admin  = contains(var.admins, plan.who.user) || contains(var.admins, plan.who.name)
  hour      = tonumber(formatdate("h", plan.time))
  in_window = var.window == null ? true : contains(var.window.days, formatdate("EEE", plan.time)) && local.hour >= var.window.from && local.hour < var.window.to
}

policy "protected" {
  description = "what others rely on is taken down by admins only, within a window of time"

  rule {
    for_each      = local.endangered
    condition     = local.is_admin
    error_message = "This plan would ${each.value.action} ${each.value.address}, which is protected. ${plan.who.name} is no admin: ask one of ${join(", ", var.admins)}."
  }

  rule {
    for_each      = local.endangered
    condition     = local.in_window
    error_message = "This plan would ${each.value.action} ${each.value.address} at ${plan.time}, outside of the window."
  }

  override {
    users = var.admins
  }
}
