case "by an admin, in the window" {
  policies = ["protected"]
  inputs   = { protected = ["job_group.serve"], admins = ["ada"], window = { days = ["Thu"], from = 9, to = 17 } }
  plan = {
    who     = { user = "ada", name = "ada@ws1" }
    time    = "2026-11-26T10:00:00Z"
    changes = [{ address = "job_group.serve.job.front[0]", action = "delete" }]
  }
}

case "by another user" {
  policies      = ["protected"]
  inputs        = { protected = ["job.serve"], admins = ["ada"] }
  expect_denied = ["protected"]
  plan = {
    who     = { user = "eve", name = "eve@ws2" }
    changes = [{ address = "job.serve[1]", action = "replace" }]
  }
  expect_message {
    policy = "protected"
    text   = "eve@ws2 is no admin: ask one of ada"
  }
}

case "outside of the window" {
  policies      = ["protected"]
  inputs        = { protected = ["job.serve"], admins = ["ada@ws1"], window = { from = 9, to = 17 } }
  expect_denied = ["protected"]
  plan = {
    who     = { user = "ada", name = "ada@ws1" }
    time    = "2026-11-26T17:00:00Z"
    changes = [{ address = "job.serve", action = "delete" }]
  }
}

case "something else" {
  policies = ["protected"]
  inputs   = { protected = ["job.serve"] }
  plan     = { changes = [{ address = "job.server", action = "delete" }, { address = "job.serve", action = "update" }] }
}
