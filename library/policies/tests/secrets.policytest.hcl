case "from a sensitive variable" {
  policies = ["secrets"]
  plan     = { jobs = [{ address = "job.a", environment = { env = { HF_TOKEN = sensitive("x"), STEPS = "100" } } }] }
}

case "in clear" {
  policies      = ["secrets"]
  expect_denied = ["secrets"]
  plan          = { jobs = [{ address = "job.a", environment = { env = { HF_TOKEN = "hf_abcdef" } } }] }
  expect_message {
    policy = "secrets"
    text   = "job.a has the environment variable HF_TOKEN in clear"
  }
}
