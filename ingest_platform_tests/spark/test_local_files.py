"""Files of a local path, as Spark makes them through Hadoop: modes, links, renames, checksums."""

from __future__ import annotations

from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ingest_platform.spark.logstore.compile import LOCAL_CONTEXT_CLASS, LOCAL_FILES_CLASS

TEXT = b"some bytes"


class Hadoop:
    """Hadoop's two ways to a local path, as a session of the platform has them."""

    def __init__(self, spark: SparkSession) -> None:
        self.jvm: Any = spark._jvm
        java_context: Any = spark.sparkContext._jsc
        self.conf = java_context.hadoopConfiguration()
        self.root = self.jvm.java.net.URI.create("file:///")
        hadoop = self.jvm.org.apache.hadoop.fs
        self.files = hadoop.FileSystem.get(self.root, self.conf)
        self.context = hadoop.FileContext.getFileContext(self.root, self.conf)

    def path(self, path: Path) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(path.as_uri())

    def mode(self, bits: int) -> Any:
        return self.jvm.org.apache.hadoop.fs.permission.FsPermission.createImmutable(bits)

    def write(self, path: Path) -> None:
        """Through a FileSystem."""
        out = self.files.create(self.path(path))
        out.write(TEXT)
        out.close()

    def create(self, path: Path, data: bytes = TEXT) -> None:
        """Through a FileContext, as Spark writes its checkpoints."""
        options = self.jvm.org.apache.hadoop.fs.Options.CreateOpts
        flags = self.jvm.java.util.EnumSet.of(self.jvm.org.apache.hadoop.fs.CreateFlag.CREATE)
        parents = self._array(options.createParent())
        out = self.context.create(self.path(path), flags, parents)
        out.write(data)
        out.close()

    def rename(self, source: Path, target: Path, how: str) -> None:
        """Through a FileContext."""
        rename = self.jvm.org.apache.hadoop.fs.Options.Rename.valueOf(how)
        self.context.rename(self.path(source), self.path(target), self._array(rename))

    def read(self, path: Path) -> bytes:
        """With whatever verifies it."""
        opened = self.files.open(self.path(path))
        try:
            return bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(opened))
        finally:
            opened.close()

    def _array(self, item: Any) -> Any:
        """Of one item, as Hadoop takes options."""
        kind = item.getClass()
        of = kind if kind.isEnum() else kind.getSuperclass()
        found = self.jvm.java.lang.reflect.Array.newInstance(of, 1)
        self.jvm.java.lang.reflect.Array.set(found, 0, item)
        return found


@pytest.fixture
def hadoop(spark: SparkSession) -> Hadoop:
    return Hadoop(spark)


def mode_of(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


def test_both_ways_are_ours(hadoop: Hadoop) -> None:
    assert hadoop.files.getClass().getName() == LOCAL_FILES_CLASS
    assert hadoop.context.getDefaultFileSystem().getClass().getName() == LOCAL_CONTEXT_CLASS


def test_file_has_the_mode_that_hadoop_asks_for_and_a_checksum(
    hadoop: Hadoop, tmp_path: Path
) -> None:
    hadoop.write(tmp_path / "a")
    assert mode_of(tmp_path / "a") == 0o644
    assert (tmp_path / "a").read_bytes() == TEXT
    assert (tmp_path / ".a.crc").exists()
    (tmp_path / "a").write_bytes(b"other bytes")
    opened = hadoop.files.open(hadoop.path(tmp_path / "a"))
    with pytest.raises(Py4JJavaError, match="ChecksumException"):
        opened.read()
    opened.close()


@pytest.mark.parametrize("bits", [0o600, 0o750, 0o000, 0o1777])
def test_mode_is_set(hadoop: Hadoop, tmp_path: Path, bits: int) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    hadoop.files.setPermission(hadoop.path(folder), hadoop.mode(bits))
    assert mode_of(folder) == bits


def test_mode_of_a_missing_file_is_an_error(hadoop: Hadoop, tmp_path: Path) -> None:
    with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
        hadoop.files.setPermission(hadoop.path(tmp_path / "none"), hadoop.mode(0o600))


@pytest.mark.parametrize("name", ["file", "link", "folder", "dangling"])
def test_link_is_what_hadoop_says_that_it_is(hadoop: Hadoop, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(TEXT)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")

    def seen(files: Any) -> tuple[bool, bool, int]:
        files.initialize(hadoop.root, hadoop.conf)
        status = files.getFileLinkStatus(hadoop.jvm.org.apache.hadoop.fs.Path(str(tmp_path / name)))
        return status.isSymlink(), status.isDirectory(), status.getLen()

    ours = seen(hadoop.jvm.ingest.platform.PosixFiles())
    assert ours == seen(hadoop.jvm.org.apache.hadoop.fs.RawLocalFileSystem())
    assert ours[0] == (tmp_path / name).is_symlink()


def test_missing_file_is_an_error(hadoop: Hadoop, tmp_path: Path) -> None:
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        hadoop.context.getFileLinkStatus(hadoop.path(tmp_path / "none"))


@pytest.mark.parametrize("folder", ["offsets", "_delta_log"])
def test_rename_never_replaces_a_checkpoints_file(
    hadoop: Hadoop, tmp_path: Path, folder: str
) -> None:
    """What Spark's checkpoints rely on: a batch is planned once."""
    draft, target = tmp_path / folder / "draft", tmp_path / folder / "0"
    hadoop.write(draft)
    hadoop.write(target)
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        hadoop.rename(draft, target, "NONE")
    assert draft.exists()


@pytest.mark.parametrize(("folder", "beside"), [("offsets", True), ("_delta_log", False)])
def test_only_what_is_beside_a_log_has_no_checksum(
    hadoop: Hadoop, tmp_path: Path, folder: str, *, beside: bool
) -> None:
    """A third of the names that every batch reads would be such."""
    draft, target = tmp_path / folder / ".7.crc.tmp", tmp_path / folder / "7.crc"
    hadoop.create(draft)
    hadoop.rename(draft, target, "NONE")
    names = {"7.crc", ".7.crc.crc"} if beside else {"7.crc"}
    assert {path.name for path in (tmp_path / folder).iterdir()} == names
    assert hadoop.read(target) == TEXT


def test_checksum_that_outlived_its_file_in_a_log_is_forgotten(
    hadoop: Hadoop, tmp_path: Path
) -> None:
    log = tmp_path / "_delta_log"
    hadoop.write(log / "7.crc")
    assert (log / ".7.crc.crc").exists()
    (log / "7.crc").unlink()
    hadoop.create(log / "draft", TEXT * 2)
    hadoop.rename(log / "draft", log / "7.crc", "NONE")
    assert hadoop.read(log / "7.crc") == TEXT * 2


def test_file_of_a_log_is_replaced_where_that_is_asked_for(hadoop: Hadoop, tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    hadoop.create(log / "7.crc")
    hadoop.create(log / "draft", TEXT * 2)
    hadoop.rename(log / "draft", log / "7.crc", "OVERWRITE")
    assert hadoop.read(log / "7.crc") == TEXT * 2
