# A model server with three replicas that stay up, and a job that spreads
# prompts over them. The model learns from the text in data/ as it starts.

fray {
  state "local" {
    path = ".fray/inference"
  }
}

variable "replicas" {
  type        = number
  default     = 3
  description = "how many servers"
}

variable "pause" {
  type        = number
  default     = 0
  description = "seconds that the client waits after each prompt, to leave time for faults"
}

variable "out" {
  type        = string
  default     = "out/inference"
  description = "directory for the answers, relative to this file"
}

locals {
  result = "${abspath(var.out)}/result.jsonl"
}

actor_service "inference" {
  replicas = var.replicas
  command  = ["python3", "server.py"]

  resources {
    cpu   = 1
    ports = ["http"]
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
    timeout      = "30s"
    start_period = "2m" # training the model takes a moment, and on a busy machine more
  }

  restart {
    max = -1
  }
}

job "client" {
  command = ["python3", "client.py"]

  environment {
    project = "inference"
    env = {
      ENDPOINTS = jsonencode(actor_service.inference.endpoints)
      PROMPTS   = "prompts.txt"
      RESULT    = local.result
      PAUSE     = var.pause
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
  description = "one JSON object per line: prompt, completion, replica"
}
