"""A small disk is full within its block, and only there."""

import errno
from pathlib import Path

import pytest

from tests.servers.account import Account
from tests.servers.small_disk import mounted_disk


def test_a_full_disk_takes_no_byte_and_one_that_was_freed_does() -> None:
    with mounted_disk(1 << 20, Account()) as disk:
        if not disk.is_mounted:
            pytest.skip("only root can mount a small disk, and not everywhere")
        file = disk.folder / "file"
        with disk.full(), pytest.raises(OSError, match="No space left") as refused:
            file.write_bytes(b"x")

        assert refused.value.errno == errno.ENOSPC and file.write_bytes(b"x") == 1
    assert not disk.folder.exists()


def test_a_server_s_account_owns_its_disk() -> None:
    account = Account.for_postgres()
    with mounted_disk(1 << 20, account) as disk:
        assert account.can("touch", Path(disk.folder) / "file")
