case "within its budget" {
  policies = ["budget"]
  inputs   = { max_chips = { rl = 16 }, max_cost_per_month = { "*" = 20000 } }
  plan = {
    by_namespace = {
      rl    = { after = { chips = 16, cost_per_month = { low = 100, high = 19999 } } }
      other = { after = { chips = 4000, cost_per_month = { high = 20000 } } }
    }
  }
}

case "too many chips" {
  policies      = ["budget"]
  inputs        = { max_chips = { rl = 16 } }
  expect_denied = ["budget"]
  plan          = { by_namespace = { rl = { after = { chips = 17 } } } }
  expect_message {
    policy = "budget"
    text   = "would take 17 chips, and may take 16"
  }
}

case "what is over its budget may shrink" {
  policies = ["budget"]
  inputs   = { max_chips = { rl = 16 } }
  plan     = { by_namespace = { rl = { before = { chips = 64 }, after = { chips = 32 } } } }
}

case "too much money" {
  policies      = ["budget"]
  inputs        = { max_cost_per_month = { "*" = 20000 } }
  expect_denied = ["budget"]
  plan          = { by_namespace = { rl = { after = { cost_per_month = { high = 20001 } } } } }
}

case "a price that is not known" {
  policies      = ["budget"]
  inputs        = { max_cost_per_month = { rl = 20000 } }
  expect_denied = ["budget"]
  plan          = { by_namespace = { rl = { after = { unknown_prices = 2 } }, other = { after = { unknown_prices = 1 } } } }
}
