variable "allowed_zones" {
  description = "zones in which slices may be; none: all"
  type        = list(string)
  default     = []
}

locals {
  default_zones = flatten([for p in plan.providers : p.zones if p.name == "gcp"])
  placed = concat(
    [for j in plan.jobs : { address = j.address, zones = j.resources.zones, regions = j.resources.regions } if j.resources.provider == "gcp" && j.resources.reservation == ""],
    [for r in plan.reservations : { address = r.address, zones = r.zones, regions = r.regions } if r.provider == "gcp"],
  )
}

policy "zones" {
  description = "slices are in allowed zones only"

  rule {
    for_each = length(var.allowed_zones) == 0 ? [] : [
      for p in local.placed : merge(p, { zones = length(p.zones) > 0 ? p.zones : (length(p.regions) > 0 ? [] : local.default_zones) })
    ]
    condition     = length(each.value.zones) > 0 && length(setsubtract(each.value.zones, var.allowed_zones)) == 0
    error_message = "${each.value.address} may come up in ${length(each.value.zones) > 0 ? join(", ", setsubtract(each.value.zones, var.allowed_zones)) : "any zone"}. Set zones to some of ${join(", ", var.allowed_zones)}."
  }
}
