variable "checkpoint_variable" {
  description = "the environment variable that says where a job saves checkpoints"
  type        = string
  default     = "CHECKPOINT_DIR"
}

variable "checkpoint_min_chips" {
  description = "from how many chips on a job must save checkpoints"
  type        = number
  default     = 8
}

variable "checkpoint_prefix" {
  description = "how the place of checkpoints begins"
  type        = string
  default     = "gs://"
}

policy "checkpoints" {
  description = "large jobs that can be preempted save checkpoints outside of their machines"

  rule {
    for_each      = [for j in plan.jobs : j if j.kind == "job" && j.chips >= var.checkpoint_min_chips && j.resources.preemptible]
    condition     = startswith(lookup(each.value.environment.env, var.checkpoint_variable, ""), var.checkpoint_prefix)
    error_message = "${each.value.address} takes ${each.value.chips} chips that can be preempted: set env = { ${var.checkpoint_variable} = \"${var.checkpoint_prefix}…\" } and save checkpoints there."
  }
}
