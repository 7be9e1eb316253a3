"""Wrong answers to the exercises of lesson 07, as test_exercises.py takes them."""

SHARE = "self.shards[first::step]"
DRAW = "rng.randrange(size)"
REST = "    rng.shuffle(buffer)\n    yield from buffer"
ANSWERS: dict[str, list[tuple[dict[str, str], str]]] = {
    "07_ordered_stream 1": [
        ({}, ""),
        ({SHARE: "self.shards"}, "with 2 workers for 7 shards, number 0 comes 2 times"),
        ({SHARE: "self.shards[first : first + 1]"}, "with 0 workers for 7 shards, number 10 never"),
        (
            {SHARE: "self.shards[: len(self.shards) // step * step][first::step]"},
            "number 60 never comes",
        ),
        ({" if worker else (0, 1)": ""}, "AttributeError"),
        ({SHARE: "self.shards[first :: step - 1 or 1]"}, "number 10 comes 2 times"),
        ({"first, step = (worker.id,": "first, step = (worker.id + 1,"}, "number 0 never comes"),
        ({"yield from shard": "yield from (number + 1 for number in shard)"}, "number 0 never"),
    ],
    "07_ordered_stream 2": [
        ({}, ""),
        ({"for item in items:": "for item in [*items]:"}, "killed: over its"),
        ({DRAW: "0"}, "draw at random from the buffer"),
        ({DRAW: "size - 1"}, "draw at random from the buffer"),
        ({DRAW: "rng.randrange(size - 1)"}, "empty range"),
        ({REST: "    rng.shuffle(buffer)"}, "50 are lost"),
        ({"        buffer[place] = item": "        buffer.append(item)"}, "came out"),
        ({"len(buffer) < size": "len(buffer) < 2 * size"}, "hold at most 50"),
        ({"        buffer[place] = item\n": ""}, "are lost"),
    ],
    "07_ordered_stream 3": [
        ({}, ""),
        ({'self.next = state["next"]': "pass"}, "stopped after 1, number 0 comes twice"),
        ({'state["next"]': 'state["next"] + 1'}, "stopped after 0, number 0 never comes"),
        ({'state["next"]': 'state["next"] - 1'}, "stopped after 1, number 0 comes twice"),
        (
            {"        self.next = 0\n\n    def state": "\n    def state"},
            "the epoch after that is not",
        ),
        ({'return {"next": self.next}': "return self"}, "not JSON serializable"),
        ({'{"next": self.next}': '{"next": self.count}'}, "stopped after 0, number 0 never comes"),
    ],
}
