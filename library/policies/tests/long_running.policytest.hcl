case "replaced after an hour" {
  policies = ["long_running"]
  plan     = { changes = [{ address = "job.train", action = "replace", status = "running", ran_seconds = 3600 }] }
}

case "replaced after two days" {
  policies      = ["long_running"]
  expect_denied = ["long_running"]
  plan          = { changes = [{ address = "job.train", action = "replace", status = "running", ran_seconds = 176400, forced_by = ["resources.tpu"] }] }
  expect_message {
    policy = "long_running"
    text   = "has run for 49 hours, and this plan would replace it, because of resources.tpu"
  }
}

case "deleted, one of two" {
  policies      = ["long_running"]
  expect_denied = ["long_running"]
  plan = { changes = [
    { address = "job.a", action = "no-op", status = "running", ran_seconds = 999999 },
    { address = "job.b[0]", action = "delete", status = "running", ran_seconds = 86400 },
  ] }
}

case "it has ended" {
  policies = ["long_running"]
  plan     = { changes = [{ address = "job.train", action = "delete", status = "succeeded", ran_seconds = 999999 }] }
}
