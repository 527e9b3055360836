"""A client repeats by itself what only reads, and nothing else."""

import json
from typing import Any

from tape.sdk.remote.channel import OPTIONS


def retried() -> set[str]:
    config: Any = json.loads(str(dict(OPTIONS)["grpc.service_config"]))
    return {each["method"] for method in config["methodConfig"] for each in method["name"]}


def test_a_client_repeats_every_procedure_that_only_reads() -> None:
    assert retried() >= {"GetRun", "ListEffects", "ShowRun", "DiffRuns", "AdmitBudget", "ExplainReaction"}


def test_a_client_repeats_no_procedure_that_writes() -> None:
    assert retried().isdisjoint({"ListDueTimers", "ResumeRun", "ClaimTasks", "DoubtSilentDispatches", "RecordDecision"})
