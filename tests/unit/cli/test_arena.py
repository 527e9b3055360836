"""The arena: a world to watch, to fork and to change."""

from collections import Counter

import pytest

from tape.cli.demo.arena.actions import Action, act
from tape.cli.demo.arena.agents import AgentView
from tape.cli.demo.arena.producer import MAX_TURNS, arena, play
from tape.cli.demo.arena.turns import TYPES, StoryPosition, world_at
from tape.cli.demo.arena.world import Stock, found, mutate
from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.core.event import Event

AGENTS = 3
TURN = 2 + 6 * AGENTS


class MemorySink(list[Event]):
    """A sink that keeps what is emitted."""

    def emit(self, event: Event) -> None:
        self.append(event)

    @property
    def payloads(self) -> list[tuple[str, object]]:
        return [(event.type, event.payload) for event in self]

    def prosperity(self, turn: int) -> int:
        """What all settlements together are worth after a turn."""
        metrics = [event.payload for event in self if event.type == "metric" and isinstance(event.payload, dict)]
        return sum(metric["value"] for metric in metrics if metric["turn_num"] == turn)  # type: ignore[misc]


def story(turns: int, seed: int = 7) -> MemorySink:
    emitted = MemorySink()
    play("r", StoryPosition(found(seed)), turns, emitted)
    return emitted


def fork(prefix: list[Event], mutation: JsonValue, turns: int) -> MemorySink:
    emitted = MemorySink()
    arena(prefix, mutation, turns, emitted)
    return emitted


def test_a_turn_has_all_eight_types_and_five_for_each_agent() -> None:
    counted = Counter(event.type for event in story(1))

    assert counted == {"turn_start": 1, "world_mutation": 1} | dict.fromkeys(TYPES[1:6], AGENTS) | {"metric": AGENTS}
    assert sum(counted.values()) == TURN


def test_every_event_has_its_turn_and_agents_are_subjects() -> None:
    emitted = story(2)

    assert {event.payload["turn_num"] for event in emitted if isinstance(event.payload, dict)} == {1, 2}
    assert {event.subject.split("/")[2] for event in emitted} == {"world", "ada", "bo", "cy"}
    assert {event.subject.split("/")[3] for event in emitted} == set(TYPES)


def test_a_response_has_its_model_its_tool_its_tokens_and_its_price() -> None:
    [first, *_] = [event.payload for event in story(1) if event.type == "llm_response"]

    assert isinstance(first, dict)
    assert first.keys() == {"turn_num", "agent", "model", "reasoning", "action", "tokens", "cost_usd"}
    assert isinstance(first["cost_usd"], float) and 0 < first["cost_usd"] < 0.01


def test_every_tool_but_rest_is_used_in_a_long_story() -> None:
    done = [event.payload for event in story(60) if event.type == "action_result" and isinstance(event.payload, dict)]

    assert {result["tool"] for result in done if result["ok"]} >= {
        "gather", "recruit", "build_house", "advance_age", "trade"
    }  # fmt: skip


def test_stories_of_two_seeds_differ() -> None:
    assert story(5, seed=1).payloads != story(5, seed=2).payloads


def test_a_famine_is_seen_and_plenty_too() -> None:
    emitted = story(30)
    prefix = emitted[: 20 * TURN]

    famine, plenty = fork(prefix, {"food": 0}, 10), fork(prefix, {"food": 500, "pop_cap": 60}, 10)

    assert famine.prosperity(22) < emitted.prosperity(22) < plenty.prosperity(22)
    assert plenty.prosperity(30) > 1.2 * emitted.prosperity(30)


def test_a_settlement_that_nothing_feeds_falls_and_stays_fallen() -> None:
    fallen = fork(story(3), {"population": 0}, 5)

    results = [event.payload for event in fallen if event.type == "action_result" and isinstance(event.payload, dict)]
    assert all(not result["ok"] for result in results)
    assert fallen.prosperity(8) == 0


def test_a_mutation_sets_what_it_names_for_everybody() -> None:
    world = mutate(found(), {"gold": 99, "population": 0, "pop_cap": 3, "age": "castle"})

    assert {(s.stock.gold, s.stock.food, s.population, s.pop_cap, s.age) for s in world.settlements} == {
        (99, 40, 0, 3, "castle")
    }


@pytest.mark.parametrize(
    "mutation",
    [{"food": -1}, {"pop_cap": -1}, {"wood": 1.0}, {"gold": True}, {"stone": "1"}, {"food": 1 << 40}, {"age": "stone"},
     {"age": 1}, {"seed": 1}, {"": 0}, {"food": None}, [], "food", 7, b"{}"],
)  # fmt: skip
def test_any_other_mutation_is_refused(mutation: object) -> None:
    with pytest.raises(UsageError):
        mutate(found(), mutation)  # type: ignore[arg-type]


def test_a_refused_mutation_says_nothing() -> None:
    emitted = MemorySink()

    with pytest.raises(UsageError):
        arena(story(1), {"iron": 1}, 3, emitted)
    assert emitted == []


@pytest.mark.parametrize("turns", [-1, MAX_TURNS + 1, True, 1.0])
def test_turns_are_0_to_200(turns: object) -> None:
    with pytest.raises(UsageError, match="n_turns"):
        play("r", StoryPosition(found()), turns, MemorySink())  # type: ignore[arg-type]


def test_no_turns_emit_nothing() -> None:
    assert fork(story(2), {"food": 3}, 0) == []


def test_a_fork_of_a_fork_knows_the_first_ones_mutation() -> None:
    prefix = story(3)[: 2 * TURN + 7]
    decree = Event(run_id="r", type="mutation", payload={"food": 1_000})
    forked = Event(run_id="r", type="fork", kind="run", payload={}, subject="/tape/run/forked/a/b")

    assert world_at([*prefix, forked, decree]).world.settlements[0].stock.food == 1_000
    assert fork([*prefix, forked, decree], None, 2).payloads == fork(prefix, {"food": 1_000}, 2).payloads


def test_a_prefix_without_a_story_begins_one() -> None:
    strangers = [
        Event(run_id="r", type="action", payload={"x": 1}),
        Event(run_id="r", payload=b"x", content_type="a/b"),
    ]

    assert fork([], None, 2).payloads == fork(strangers, None, 2).payloads == story(2).payloads


def test_events_belong_to_the_run_of_the_sink() -> None:
    sink = MemorySink()
    sink.run_id = "child"  # type: ignore[attr-defined]

    arena(story(1), None, 1, sink)

    assert {event.run_id for event in sink} == {"child"}


def test_a_model_is_plugged_in_and_not_asked_again_about_what_it_decided() -> None:
    seen: list[AgentView] = []

    def model(observation: AgentView) -> Action:
        seen.append(observation)
        return Action(tool="trade", partner="nobody", reasoning=f"thought {len(seen)}")

    emitted = MemorySink()
    place = play("r", StoryPosition(found()), 2, emitted, model)

    assert [(o.turn_num, o.agent) for o in seen] == [(turn, name) for turn in (1, 2) for name in ("ada", "bo", "cy")]
    assert world_at(emitted) == place
    assert len(seen) == 2 * AGENTS


@pytest.mark.parametrize(
    "action", [{"tool": "fly"}, {"tool": "gather", "resource": "iron"}, {"tool": "trade", "wanted": 1}]
)
def test_an_action_nobody_can_take_cannot_exist(action: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Action(**action)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "action",
    [
        Action(tool="trade", partner="ada"),
        Action(tool="trade", partner="bo", resource="gold", wanted="food"),
        Action(tool="advance_age"),
        Action(tool="build_house"),
        Action(tool="recruit"),
    ],
)
def test_what_cannot_be_paid_changes_nothing(action: Action) -> None:
    poor = mutate(found(), dict.fromkeys(["food", "wood", "gold", "stone"], 0))

    outcome = act(poor, 0, action)

    assert not outcome.is_done and outcome.world == poor


def test_the_land_gives_no_more_than_it_has() -> None:
    world = found()
    bare = world.changed(0, world.settlements[0], land=Stock(wood=3))

    assert act(bare, 0, Action(tool="gather", resource="wood")).world.land == Stock()
    assert not act(bare, 0, Action(tool="gather", resource="gold")).is_done


@pytest.mark.parametrize("names", [(), ("a", "a"), ("a/b",), ("",)])
def test_settlements_have_names_of_their_own(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="names"):
        found(1, names)
