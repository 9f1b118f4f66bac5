variable "max_failures" {
  description = "how often a job may be tried again after it failed"
  type        = number
  default     = 3
}

policy "retries" {
  description = "a job that fails does not fail for ever on expensive machines"

  rule {
    for_each      = [for j in plan.jobs : j if j.kind == "job"]
    condition     = each.value.retries.failure >= 0 && each.value.retries.failure <= var.max_failures
    error_message = "${each.value.address} is tried again ${each.value.retries.failure < 0 ? "without end" : "${each.value.retries.failure} times"} after failures: set retries { failure = N } with at most ${var.max_failures}."
  }
}
