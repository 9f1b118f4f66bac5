# Reinforcement learning with shared actors: a curriculum and an exchange of weights
# and rollouts, which a trainer and rollout workers call. Names resolve while a
# controller leads, so run `fray watch` on this file. Python needs the packages
# fray and numpy.

fray {
  state "local" {
    path = ".fray/actor-rl"
  }
}

variable "rollouts" {
  type        = number
  default     = 3
  description = "how many rollout workers"
}

variable "target" {
  type        = number
  default     = 0.9
  description = "mean reward of the hardest lesson at which training ends; 1 is the most"
}

variable "pause" {
  type        = number
  default     = 0
  description = "seconds that a worker waits after each rollout, to leave time for faults"
}

variable "out" {
  type        = string
  default     = "out/rl"
  description = "directory for the result, relative to this file"
}

locals {
  result = "${abspath(var.out)}/result.json"
}

namespace "rl" {}

actor_service "curriculum" {
  namespace = namespace.rl

  actor {
    class = "rl:Curriculum"
    args = {
      lessons = [
        { name = "easy", margin = 1.5 },
        { name = "middling", margin = 0.7 },
        { name = "hard", margin = 0.2 },
      ]
      target = 0.8
    }
  }

  environment {
    project = "programs"
  }
}

actor_service "exchange" {
  namespace = namespace.rl

  actor {
    class = "rl:Exchange"
  }

  environment {
    project = "programs"
  }
}

job "trainer" {
  namespace  = namespace.rl
  command    = ["python", "rl.py", "trainer"]
  depends_on = [actor_service.curriculum, actor_service.exchange]

  resources {
    tpu = "v5litepod-4"
  }

  environment {
    project = "programs"
    env = {
      TARGET = var.target
      RESULT = local.result
    }
  }

  retries {
    failure    = 3
    preemption = 100
  }
}

job "rollout" {
  namespace  = namespace.rl
  count      = var.rollouts
  command    = ["python", "rl.py", "rollout"]
  depends_on = [actor_service.curriculum, actor_service.exchange]

  resources {
    tpu = "v5litepod-4"
  }

  environment {
    project = "programs"
    env = {
      WORKER = count.index
      PAUSE  = var.pause
    }
  }

  retries {
    failure    = 3
    preemption = 100
  }
}

output "result" {
  value       = local.result
  description = "steps, and the reward before and after, as JSON"
}
