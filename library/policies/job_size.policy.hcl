variable "max_slices_per_job" {
  description = "slices that one job may have"
  type        = number
  default     = 8
}

variable "max_chips_per_job" {
  description = "chips that one job may have"
  type        = number
  default     = 1024
}

variable "job_size_overriders" {
  description = "users who may override the policy job_size"
  type        = list(string)
  default     = []
}

policy "job_size" {
  description = "no job is larger than it is meant to be"

  rule {
    for_each      = plan.jobs
    condition     = each.value.resources.slices <= var.max_slices_per_job
    error_message = "${each.value.address} has ${each.value.resources.slices} slices, and at most ${var.max_slices_per_job} are allowed."
  }

  rule {
    for_each      = plan.jobs
    condition     = each.value.chips <= var.max_chips_per_job
    error_message = "${each.value.address} has ${each.value.chips} chips, and at most ${var.max_chips_per_job} are allowed."
  }

  override {
    users = var.job_size_overriders
  }
}
