"""The arena's invariants: the same story from anywhere, and nothing from nothing."""

from hypothesis import given, settings, strategies as st

from tape.cli.demo.arena.actions import TOOLS, Action
from tape.cli.demo.arena.producer import play
from tape.cli.demo.arena.snapshot import restored, snapshot
from tape.cli.demo.arena.turns import StoryPosition, step, world_at
from tape.cli.demo.arena.world import AGES, RESOURCES, World, found, mutate
from tape.core import codec
from tape.core.event import Event
from tests.unit.cli.test_arena import TURN, MemorySink, fork, story

TURNS = 12

amounts = st.integers(0, 500)
mutations = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys((*RESOURCES, "population", "pop_cap"), amounts) | {"age": st.sampled_from(AGES)},
)
actions = st.builds(
    Action,
    tool=st.sampled_from(TOOLS),
    resource=st.none() | st.sampled_from(RESOURCES),
    partner=st.none() | st.sampled_from(["ada", "bo", "cy", "nobody"]),
    wanted=st.none() | st.sampled_from(RESOURCES),
)


@given(st.integers(0, 2**32), st.integers(0, TURNS * TURN))
@settings(max_examples=50)
def test_a_story_goes_on_from_anywhere_as_if_it_had_never_stopped(seed: int, cut: int) -> None:
    whole = story(TURNS, seed)
    prefix = [*whole[:TURN], *whole[TURN:cut]]  # at least one turn: nothing else knows the seed

    rest = fork(prefix, None, TURNS - len(prefix) // TURN)

    assert [(event.type, event.payload) for event in prefix] + rest.payloads == whole.payloads


@given(mutations, st.integers(TURN, 6 * TURN), st.integers(0, 4 * TURN))
@settings(max_examples=50)
def test_a_changed_story_can_itself_be_taken_up_anywhere(mutation: codec.JsonValue, cut: int, again: int) -> None:
    prefix = story(6)[:cut]
    child = fork(prefix, mutation, 4)
    decree = Event(run_id="r", type="mutation", payload=mutation)

    events = [*prefix, decree, *child[:again]]
    rest = fork(events, None, 4 + cut // TURN - world_at(events).world.turn + 1)

    assert rest.payloads == child.payloads[again:]


@given(st.integers(0, 2**32), mutations, st.lists(actions, max_size=30))
def test_nothing_comes_from_nothing_and_nothing_is_below_zero(
    seed: int, mutation: codec.JsonValue, chosen: list[Action]
) -> None:
    world = mutate(found(seed), mutation)
    choices = iter(chosen)

    place = StoryPosition(world)
    while place.world.turn <= len(chosen) // 3:
        place, _ = step(place, lambda _: next(choices, Action(tool="rest")))

        assert wealth(place.world) == wealth(world)
        assert is_sound(place.world)


@given(st.integers(0, 2**32), mutations)
def test_a_world_survives_its_snapshot(seed: int, mutation: codec.JsonValue) -> None:
    world = play("r", StoryPosition(mutate(found(seed), mutation)), 3, MemorySink()).world

    assert restored(codec.parse(codec.encode(snapshot(world)))) == world


def wealth(world: World) -> list[int]:
    """All there ever was of each resource, but for what has grown."""
    held = [settlement.stock for settlement in world.settlements]
    total = [sum(amounts) for amounts in zip(world.land, world.spent, *held, strict=True)]
    return [total[0] - world.grown, *total[1:]]


def is_sound(world: World) -> bool:
    stocks = [world.land, world.spent, *(settlement.stock for settlement in world.settlements)]
    return all(min(stock) >= 0 for stock in stocks) and all(s.population >= 0 for s in world.settlements)
