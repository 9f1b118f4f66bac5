variable "allowed_registries" {
  description = "how the names of images may begin; none: in any way"
  type        = list(string)
  default     = []
}

policy "images" {
  description = "images are pinned by digest, so that what was tested is what runs"

  rule {
    for_each      = [for j in plan.jobs : j if j.environment.image != ""]
    condition     = can(regex("@sha256:[0-9a-f]{64}$", each.value.environment.image))
    error_message = "${each.value.address} runs ${each.value.environment.image}, which can become another image: add its digest, as in NAME@sha256:…"
  }

  rule {
    for_each      = length(var.allowed_registries) == 0 ? [] : [for j in plan.jobs : j if j.environment.image != ""]
    condition     = anytrue([for r in var.allowed_registries : startswith(each.value.environment.image, r)])
    error_message = "${each.value.address} runs ${each.value.environment.image}; images come from ${join(", ", var.allowed_registries)}."
  }
}
