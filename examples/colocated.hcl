# A trainer with its inference service beside it: a group that is placed in one
# region, all or none. The service draws its hosts from a reservation of the group,
# and the trainer asks it to complete prompts. The service is that of inference.hcl.

fray {
  state "local" {
    path = ".fray/colocated"
  }
}

variable "replicas" {
  type        = number
  default     = 2
  description = "how many servers"
}

variable "out" {
  type        = string
  default     = "out/colocated"
  description = "directory for the result, relative to this file"
}

locals {
  result = "${abspath(var.out)}/result.jsonl"
}

job_group "math" {
  same_region = true # the default; same_zone = true is stricter

  reservation "servers" {
    max {
      cpu    = 1
      slices = var.replicas
    }
  }

  actor_service "inference" {
    replicas = var.replicas
    command  = ["python3", "server.py"]

    resources {
      reservation = job_group.math.reservation.servers
      ports       = ["http"]
    }

    environment {
      project = "inference"
      env = {
        CORPUS  = abspath("data/opticks.txt")
        REPLICA = count.index
      }
    }

    health_check {
      http         = "/healthz"
      port         = "http"
      interval     = "1s"
      start_period = "10m" # training the model takes a moment
    }
  }

  # A stand-in for a trainer: it asks for rollouts and keeps them.
  job "trainer" {
    command = ["python3", "client.py"]

    resources {
      tpu = "v5litepod-4"
    }

    environment {
      project = "inference"
      env = {
        ENDPOINTS = jsonencode(job_group.math.actor_service.inference.endpoints)
        PROMPTS   = "prompts.txt"
        RESULT    = local.result
      }
    }

    retries {
      failure = 3
    }
  }
}

output "endpoints" {
  value = job_group.math.actor_service.inference.endpoints
}

output "result" {
  value       = local.result
  description = "one JSON object per line: prompt, completion, replica"
}
