"""Wrong answers to the exercises of lesson 08, as test_exercises.py takes them."""

ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "08_measure_dont_guess 1": [
        ({}, ""),
        ({"(8 * 4 + 1) * ": ""}, "that is one batch"),
        ({"(8 * 4 + 1)": "4"}, "that is one worker"),
        ({"(8 * 4 + 1)": "8"}, "each worker prepares four"),
        ({"(8 * 4 + 1)": "8 * 4"}, "and one is in hand"),
        ({"(8 * 4 + 1)": "(4 + 1)"}, "eight workers"),
        ({" * 4 / 2**30": " / 2**30"}, "a float32 takes four bytes"),
    ],
    "08_measure_dont_guess 2": [
        ({}, ""),
        ({"return min(workers": "return max(workers"}, "2 workers are nearly as fast"),
        ({"0.95 * best": "best"}, "2 workers are nearly as fast"),
        ({"0.95 * best": "0.5 * best"}, "that is 52% of the fastest"),
        ({"0.95 * best": "0"}, "that is 48% of the fastest"),
        ({"return min(": "return next("}, "returns 8: 2 workers are nearly as fast"),
        ({"return min(workers": "return min(rate"}, "that was not measured"),
    ],
    "08_measure_dont_guess 3": [
        ({}, ""),
        ({"return waited, worked": "return worked, waited"}, "waited is 10.0: that is the work"),
        ({"return waited, worked": "return waited"}, "return (waited, worked)"),
        ({"in batches": "in [*batches]"}, "it takes batches before it works"),
        ({"waited += ": "waited = "}, "waited is 3.0: that is one batch"),
        ({"worked += ": "worked = "}, "worked is 2.0: that is one step"),
        ({"        asked = clock()\n": "        clock()\n"}, "take the clock before and after"),
        (
            {
                "0.0, clock()\n    for": "0.0, None\n    for",
                "arrived - asked": "arrived - (asked or arrived)",
            },
            "waited is 12.0: the first batch is waited for, too",
        ),
    ],
}
