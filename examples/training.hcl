# Train a classifier of handwritten digits with JAX, data parallel over the four
# hosts of a v5litepod-16. On this machine the hosts are simulated and JAX uses
# the CPU; on Cloud TPU the same file uses the chips.

fray {
  state "local" {
    path = ".fray/training"
  }
}

variable "out" {
  type        = string
  default     = "out/training"
  description = "directory for checkpoints and the result, seen by all hosts, relative to this file"
}

variable "tpu" {
  type        = string
  default     = "v5litepod-16"
  description = "TPU type: one process for each of its hosts"
}

variable "steps" {
  type        = number
  default     = 120
  description = "training steps in all"
}

variable "step_delay" {
  type        = number
  default     = 0
  description = "seconds to wait after each step, to leave time for faults"
}

locals {
  out = abspath(var.out)
}

job "train" {
  command = ["python", "train.py"]

  resources {
    tpu = var.tpu
  }

  environment {
    project = "training"
    uv {}
    env = {
      CHECKPOINT_DIR = "${local.out}/checkpoints"
      RESULT         = "${local.out}/result.json"
      STEPS          = var.steps
      STEP_DELAY     = var.step_delay
    }
  }

  # A lost host costs a preemption, a crash of the program a failure. Either
  # way all four processes start again, from the newest checkpoint.
  retries {
    preemption = 100
    failure    = 3
  }
}

output "result" {
  value       = "${local.out}/result.json"
  description = "accuracy on images held out, as JSON"
}
