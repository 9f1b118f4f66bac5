# The program of rl.hcl as one job, a leader, which creates the actors and launches
# the workers itself. It needs a controller: run `fray watch` on this file. Python needs the
# packages fray and numpy.

fray {
  state "local" {
    path = ".fray/actor-leader"
  }
}

namespace "leader" {}

job "leader" {
  namespace = namespace.leader
  command   = ["python", "rl.py"]

  environment {
    project = "programs"
  }
}
