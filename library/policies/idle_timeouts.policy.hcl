variable "max_idle" {
  description = "how long a slice of a reservation, or a warm slice of a namespace, may idle"
  type        = string
  default     = "1h"
}

variable "max_ttl" {
  description = "how long a reservation may stand; null: for ever"
  type        = string
  default     = null
}

locals {
  epoch     = "2000-01-01T00:00:00Z"
  idle_at   = timeadd(local.epoch, var.max_idle)
  ttl_limit = var.max_ttl == null ? local.epoch : timeadd(local.epoch, var.max_ttl)
}

policy "idle_timeouts" {
  description = "machines that no job uses are given back"

  rule {
    for_each      = concat([for r in plan.reservations : { address = r.address, idle = r.idle_timeout }], [for n in plan.namespaces : { address = n.address, idle = n.idle_timeout }])
    condition     = timecmp(timeadd(local.epoch, each.value.idle), local.idle_at) <= 0
    error_message = "${each.value.address} keeps idle slices for ${each.value.idle}: set idle_timeout to at most ${var.max_idle}."
  }

  rule {
    for_each      = var.max_ttl == null ? [] : plan.reservations
    condition     = each.value.ttl != "0s" && timecmp(timeadd(local.epoch, each.value.ttl), local.ttl_limit) <= 0
    error_message = "${each.value.address} stands ${each.value.ttl == "0s" ? "for ever" : "for ${each.value.ttl}"}: set ttl to at most ${coalesce(var.max_ttl, "")}."
  }
}
