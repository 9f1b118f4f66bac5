# Reinforcement learning as a group of jobs that are placed together: a
# coordinator (curriculum, weights, rollouts), a trainer on a slice of four
# hosts, and rollout workers. The programs are plain Python and balance a pole.

fray {
  state "local" {
    path = ".fray/rl"
  }
}

variable "rollouts" {
  type        = number
  default     = 3
  description = "how many rollout workers"
}

variable "target" {
  type        = number
  default     = 475
  description = "mean length of an episode, of 500 steps, at which training ends"
}

variable "out" {
  type        = string
  default     = "out/rl"
  description = "directory for checkpoints and the result, seen by all hosts, relative to this file"
}

locals {
  out = abspath(var.out)

  # Known once the coordinator runs: jobs that use it start when the coordinator is healthy.
  coordinator = "${job_group.rl.job.coordinator.address}:${job_group.rl.job.coordinator.ports.http}"
}

namespace "rl" {}

job_group "rl" {
  namespace   = namespace.rl
  same_region = true

  job "coordinator" {
    command = ["python3", "coordinator.py"]

    resources {
      cpu   = 1
      ports = ["http"]
    }

    environment {
      project = "rl"
      env = {
        OUT     = local.out
        WORKERS = var.rollouts
      }
    }

    health_check {
      http         = "/healthz"
      port         = "http"
      interval     = "1s"
      timeout      = "30s"
      start_period = "2m" # on a busy machine Python starts slowly
    }

    retries {
      failure = 3
    }
  }

  job "trainer" {
    command = ["python3", "trainer.py"]

    resources {
      tpu = "v5litepod-16"
    }

    environment {
      project = "rl"
      env = {
        COORDINATOR = local.coordinator
        OUT         = local.out
        TARGET      = var.target
      }
    }

    retries {
      failure    = 3
      preemption = 100
    }
  }

  job "rollout" {
    count   = var.rollouts
    command = ["python3", "rollout.py"]

    resources {
      tpu = "v5litepod-4"
    }

    environment {
      project = "rl"
      env = {
        COORDINATOR = local.coordinator
        WORKER      = count.index
      }
    }

    retries {
      failure    = 3
      preemption = 100
    }
  }
}

output "coordinator" {
  value = local.coordinator
}

output "result" {
  value       = "${local.out}/result.json"
  description = "steps and mean episode, as JSON"
}
