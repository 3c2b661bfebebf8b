"""`porism view`: the report served while its run goes on, on this machine's loopback, to who knows the address.

The address holds a random token, and a request under another host name is refused, so no other program's page can read
the run. The page is made anew when the folder has changed, no oftener than is cheap, and an open page is told so by a
server-sent event.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiohttp import web

from porism.errors import ConfigError
from porism.report.load import Folder
from porism.report.page import Layout, write_html

POLL = 1.0  # seconds between looks at the folder
IDLE = 15.0  # seconds after which a quiet connection is shown to be alive
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Viewer:
    """Serves one run folder. wanted: ids of problems to show in full.

    Raises ConfigError or StoreError where there is no run; one that has no answers yet is a run.
    """

    def __init__(self, run: Path, wanted: Collection[str] = ()) -> None:
        self._run, self._wanted = run, wanted
        self._token = secrets.token_urlsafe(24)
        self._page, self._version = b"", 0
        self._changed = asyncio.Condition()
        self._hosts: frozenset[str] = frozenset()

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[str]:
        """Serve until left; gives the address. ConfigError where the port is taken."""
        await self._make()
        app = web.Application()
        app.router.add_get(f"/{self._token}/", self._get_page)
        app.router.add_get(f"/{self._token}/events", self._get_events)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(f"--port {port}: cannot be listened on: {error.strerror}") from error
            bound = runner.addresses[0][1]
            self._hosts = frozenset((f"127.0.0.1:{bound}", f"localhost:{bound}"))
            watching = asyncio.create_task(self._watch())
            try:
                yield f"http://127.0.0.1:{bound}/{self._token}/"
            finally:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching
        finally:
            await runner.cleanup()

    def _state(self) -> tuple[tuple[str, int, int], ...]:
        files = [self._run / name for name in ("run.json", "problems.jsonl", "index.jsonl", "errors.jsonl")]
        found = []
        for file in [*files, *sorted((self._run / "verdicts").glob("*.jsonl"))]:
            with suppress(OSError):
                stat = file.stat()
                found.append((file.name, stat.st_size, stat.st_mtime_ns))
        return tuple(found)

    async def _make(self) -> None:
        def make() -> bytes:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "report.html"
                asyncio.run(self._write(file))
                return file.read_bytes()

        self._page = await asyncio.to_thread(make)
        async with self._changed:
            self._version += 1
            self._changed.notify_all()

    async def _write(self, file: Path) -> None:
        async with Folder(self._run) as folder:
            await write_html(folder, file, Layout(wanted=self._wanted, live=self._version + 1))

    async def _watch(self) -> None:
        """Make the page anew after a change; about a twentieth of the time goes into it."""
        made = self._state()
        wait = POLL
        while True:
            await asyncio.sleep(wait)
            if (state := self._state()) == made:
                wait = POLL
                continue
            begun = time.monotonic()
            await self._make()
            made = state
            wait = max(POLL, 20 * (time.monotonic() - begun))

    def _check(self, request: web.Request) -> None:
        # A foreign site may point a name of its own at this address; its pages must not read ours.
        if request.host not in self._hosts:
            raise web.HTTPNotFound

    async def _get_page(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.Response(body=self._page, content_type="text/html", charset="utf-8", headers=_HEADERS)

    async def _get_events(self, request: web.Request) -> web.StreamResponse:
        self._check(request)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        told = 0
        with suppress(ConnectionError):
            while True:
                if told != self._version:
                    told = self._version
                    await response.write(f"data: {told}\n\n".encode())
                try:
                    async with asyncio.timeout(IDLE), self._changed:
                        while told == self._version:
                            await self._changed.wait()
                except TimeoutError:
                    await response.write(b": still here\n\n")
        return response


__all__ = ["Viewer"]
