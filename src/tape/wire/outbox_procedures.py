"""The procedures of tape.proto that carry the operations of the outbox."""

from typing import Final

from tape.core.outbox_record import DeliveryState, OutboxDetail, OutboxRecord, OutboxStats, RetentionResult
from tape.operations import outbox
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import MessageMapping
from tape.wire.procedure import pages, procedure, record

ROW: Final = MessageMapping(
    OutboxRecord, pb.OutboxRow, {"payload": "payload_json", "failure_history": "failure_history_json"}
)
DELIVERY: Final = MessageMapping(DeliveryState, pb.OutboxDelivery)
DETAIL: Final = MessageMapping(OutboxDetail, pb.OutboxDetail)
STATS: Final = MessageMapping(OutboxStats, pb.OutboxStats)
RETAINED: Final = MessageMapping(RetentionResult, pb.RetainOutboxResponse)
REPLAYED: Final = MessageMapping(outbox.ReplayedOutbox, pb.ReplayOutboxResponse)
HANDED_OVER: Final = MessageMapping(outbox.HandedOverRows, pb.HandOverOutboxResponse)

PROCEDURES: Final = (
    procedure(outbox.ListOutbox, pages("rows", ROW)),
    procedure(outbox.GetOutboxEvent, record(DETAIL)),
    procedure(outbox.GetOutboxStats, record(STATS)),
    procedure(outbox.ReplayOutbox, record(REPLAYED)),
    procedure(outbox.HandOverOutbox, record(HANDED_OVER)),
    procedure(
        outbox.RetainOutbox, record(RETAINED),
        names={name: f"{name}_ms" for name in ("active", "grace", "handled_active", "handled_grace")},
    ),
)  # fmt: skip
