# A gambler, as a Python function: what it returns is the verdict on one run.
#
#     sateen run examples/ruin.toml


def ruined(theta, rng):
    """Whether a gambler with `capital` is ruined within 200 bets of 1, each won with probability `luck`."""
    gains = 2 * (rng.random(200) < theta["luck"]) - 1
    return bool((theta["capital"] + gains.cumsum() <= 0).any())
