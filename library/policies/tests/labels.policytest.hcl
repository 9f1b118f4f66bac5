case "labelled" {
  policies = ["labels"]
  inputs   = { allowed_namespaces = ["rl"] }
  plan     = { jobs = [{ address = "job.a", namespace = "rl", labels = { team = "rl" } }] }
}

case "no label" {
  policies      = ["labels"]
  inputs        = { required_labels = ["team", "cost-center"] }
  expect_denied = ["labels"]
  plan          = { jobs = [{ address = "job.a", labels = { team = "rl" } }] }
  expect_message {
    policy = "labels"
    text   = "job.a lacks the label cost-center"
  }
}

case "another namespace" {
  policies      = ["labels"]
  inputs        = { required_labels = [], allowed_namespaces = ["rl"] }
  expect_denied = ["labels"]
  plan          = { jobs = [{ address = "job.a", namespace = "mine" }] }
}
