variable "required_labels" {
  description = "labels that every job and service must have"
  type        = list(string)
  default     = ["team"]
}

variable "allowed_namespaces" {
  description = "namespaces in which jobs may be; none: all"
  type        = list(string)
  default     = []
}

policy "labels" {
  description = "every job says whose it is"

  rule {
    for_each      = plan.jobs
    condition     = alltrue([for l in var.required_labels : lookup(each.value.labels, l, "") != ""])
    error_message = "${each.value.address} lacks the label ${join(", ", [for l in var.required_labels : l if lookup(each.value.labels, l, "") == ""])}."
  }

  rule {
    for_each      = length(var.allowed_namespaces) == 0 ? [] : plan.jobs
    condition     = contains(var.allowed_namespaces, each.value.namespace)
    error_message = "${each.value.address} is in the namespace \"${each.value.namespace}\"; there may be ${join(", ", var.allowed_namespaces)}."
  }
}
