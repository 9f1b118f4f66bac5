case "a few" {
  policies = ["retries"]
  plan     = { jobs = [{ address = "job.a", retries = { failure = 3 } }, { address = "actor_service.s", retries = { failure = -1 } }] }
}

case "many" {
  policies      = ["retries"]
  expect_denied = ["retries"]
  plan          = { jobs = [{ address = "job.a", retries = { failure = 100 } }] }
}

case "without end" {
  policies      = ["retries"]
  expect_denied = ["retries"]
  plan          = { jobs = [{ address = "job.a", retries = { failure = -1 } }] }
  expect_message {
    policy = "retries"
    text   = "without end"
  }
}
