# Training on slices that come and go. A coordinator averages the gradients of the
# slices that take part; a lost slice delays the others for a few seconds only, and takes
# part again once it is back. Names resolve while a controller leads, so run
# `fray watch` on this file. Python needs the packages fray and numpy.

fray {
  state "local" {
    path = ".fray/actor-multislice"
  }
}

variable "slices" {
  type        = number
  default     = 3
  description = "how many slices train at most"
}

variable "min_slices" {
  type        = number
  default     = 2
  description = "how many are needed for a step"
}

variable "steps" {
  type    = number
  default = 300
}

variable "patience" {
  type        = number
  default     = 5
  description = "seconds that a step waits for a slice"
}

variable "pause" {
  type        = number
  default     = 0
  description = "seconds that each step takes longer, to leave time for faults"
}

variable "out" {
  type        = string
  default     = "out/multislice"
  description = "directory for the result, relative to this file"
}

locals {
  result = "${abspath(var.out)}/result.json"
}

namespace "multislice" {}

actor_service "slice_coordinator" {
  namespace = namespace.multislice

  actor {
    class = "multislice:SliceCoordinator"
    args = {
      min_slices = var.min_slices
      steps      = var.steps
      patience   = var.patience
      result     = local.result
    }
  }

  environment {
    project = "programs"
  }
}

job "slice" {
  namespace  = namespace.multislice
  count      = var.slices
  command    = ["python", "multislice.py", "slice"]
  depends_on = [actor_service.slice_coordinator]

  resources {
    tpu = "v5litepod-4"
  }

  environment {
    project = "programs"
    env = {
      SLICE = count.index
      PAUSE = var.pause
    }
  }

  retries {
    failure    = 3
    preemption = 100
  }
}

output "result" {
  value       = local.result
  description = "loss and accuracy, and with how many slices, as JSON"
}
