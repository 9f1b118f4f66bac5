# A counter in Go and a speller in Python, which call each other by name. Build
# the Go program first, from the root of the checkout:
#
#     go build -o examples/actors/out/bin/counter ./examples/actors/counter
#
# Names resolve while a controller leads, so run `fray watch` on this file. Python needs the package fray.

fray {
  state "local" {
    path = ".fray/counter"
  }
}

variable "program" {
  type        = string
  default     = "out/bin/counter"
  description = "the Go program, relative to this file"
}

variable "out" {
  type        = string
  default     = "out/counter"
  description = "directory for the result, relative to this file"
}

variable "rounds" {
  type        = number
  default     = 50
  description = "how often the client counts to 20; the counter may be killed meanwhile"
}

variable "pause" {
  type        = number
  default     = 0
  description = "seconds that counting takes, so that there is time to kill the counter"
}

namespace "counter" {}

# With a command, that program hosts the actor; the class is one that it knows.
actor_service "counter" {
  namespace = namespace.counter
  command   = [abspath(var.program)]

  actor {
    class = "Counter"
    args  = { start = 15, pause = var.pause }
  }
}

# Without one, Python does.
actor_service "speller" {
  namespace = namespace.counter

  actor {
    class = "speller:Speller"
    args  = { hyphen = "-" }
  }

  environment {
    project = "programs"
  }
}

job "client" {
  namespace  = namespace.counter
  command    = ["python", "speller.py", "client"]
  depends_on = [actor_service.counter, actor_service.speller]

  environment {
    project = "programs"
    env = {
      RESULT = "${abspath(var.out)}/result.json"
      ROUNDS = var.rounds
    }
  }

  retries {
    failure = 3
  }
}

output "endpoints" {
  value = concat(actor_service.counter.endpoints, actor_service.speller.endpoints)
}
