# A pool of inference servers with one name, and a client that spreads batches over
# whichever of them are there. Names resolve while a controller leads, so run
# `fray watch` on this file. Python needs the packages fray and numpy.

fray {
  state "local" {
    path = ".fray/actor-inference"
  }
}

variable "replicas" {
  type        = number
  default     = 3
  description = "how many servers"
}

variable "batches" {
  type        = number
  default     = 200
  description = "how many batches the client has answered, of 50 points each"
}

variable "pause" {
  type        = number
  default     = 0
  description = "seconds that the client waits after each batch, to leave time for faults"
}

variable "out" {
  type        = string
  default     = "out/inference"
  description = "directory for the result, relative to this file"
}

locals {
  result = "${abspath(var.out)}/result.json"
}

namespace "inference" {}

actor_service "inference" {
  namespace = namespace.inference
  replicas  = var.replicas

  # Each replica is inference_0, inference_1 and so on, and all are inference.
  actor {
    class = "inference:InferenceActor"
    args  = { steps = 400 }
  }

  resources {
    tpu = "v5litepod-4"
  }

  environment {
    project = "programs"
  }

  restart {
    max = -1
  }
}

job "client" {
  namespace  = namespace.inference
  command    = ["python", "inference.py", "client"]
  depends_on = [actor_service.inference]

  environment {
    project = "programs"
    env = {
      BATCHES = var.batches
      PAUSE   = var.pause
      RESULT  = local.result
    }
  }

  retries {
    failure = 3
  }
}

output "endpoints" {
  value = actor_service.inference.endpoints
}

output "result" {
  value       = local.result
  description = "accuracy, and how many servers answered, as JSON"
}
