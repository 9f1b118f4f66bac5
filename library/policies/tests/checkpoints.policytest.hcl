case "saved in a bucket" {
  policies = ["checkpoints"]
  plan     = { jobs = [{ address = "job.a", chips = 16, resources = { preemptible = true }, environment = { env = { CHECKPOINT_DIR = "gs://acme/ckpt" } } }] }
}

case "none" {
  policies      = ["checkpoints"]
  expect_denied = ["checkpoints"]
  plan          = { jobs = [{ address = "job.a", chips = 16, resources = { preemptible = true } }] }
}

case "on the machine" {
  policies      = ["checkpoints"]
  expect_denied = ["checkpoints"]
  plan          = { jobs = [{ address = "job.a", chips = 16, resources = { preemptible = true }, environment = { env = { CHECKPOINT_DIR = "/tmp" } } }] }
}

case "a small job" {
  policies = ["checkpoints"]
  plan     = { jobs = [{ address = "job.a", chips = 4, resources = { preemptible = true } }] }
}
