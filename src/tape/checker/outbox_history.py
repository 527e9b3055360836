"""The part of a history that is about the outbox, and reads of the lake."""

from tape.checker.lines import DeliverLine, EffectLine, HandOverLine, LakeLine, MalformedHistory, PublishLine, ReadLine


class OutboxHistory:
    """What transactions published, what handlers were given, and the effects that are in the database."""

    def __init__(self) -> None:
        self.published: dict[str, tuple[int, PublishLine]] = {}
        """The last step of each event's transaction."""
        self.deliveries: list[tuple[int, DeliverLine]] = []
        self.hand_overs: list[tuple[int, HandOverLine]] = []
        self.effects: list[tuple[int, EffectLine]] | None = None
        """The rows of the newest final list, if there is one."""
        self.lakes: list[tuple[int, LakeLine]] = []
        self._lists: dict[tuple[str, int], list[tuple[int, EffectLine]]] = {}

    def add(self, number: int, line: object) -> None:
        match line:
            case PublishLine():
                if line.step != "invoke" and line.event_id not in self.published:
                    raise MalformedHistory(number, f"the publish of {line.event_id} was never invoked")
                self.published[line.event_id] = (number, line)
            case DeliverLine(step="invoke"):
                self.deliveries.append((number, line))
            case HandOverLine():
                self.hand_overs.append((number, line))
            case EffectLine() | ReadLine(of="effects"):
                self._list(number, line)
            case LakeLine():
                self.lakes.append((number, line))
            case _:
                pass  # an operation that no judge needs

    def _list(self, number: int, line: EffectLine | ReadLine) -> None:
        name = line.client, line.number
        if isinstance(line, ReadLine) and line.step == "invoke":
            self._lists[name] = []
        elif name not in self._lists:
            raise MalformedHistory(number, f"the read {line.number} of {line.client} was never invoked")
        elif isinstance(line, EffectLine):
            self._lists[name].append((number, line))
        elif line.step == "ok" and line.is_final:
            self.effects = self._lists[name]
