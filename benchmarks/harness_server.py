"""A chat completions server that costs next to nothing, so that what asks it can be measured.

    python benchmarks/harness_server.py SECONDS     its address is its first line; GET /counts tells what came

Every answer comes SECONDS after its request and has 500 tokens of words and a boxed number from 0 to 9, which depends
on the body and its seed alone, as with a real server. `n` is honored. It ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from random import Random
from zlib import crc32

TOKENS = 500
_WORDS = Random(1)
TEXT = " ".join("".join(_WORDS.choices("aeioubcdfglmnprst", k=_WORDS.randint(2, 5))) for _ in range(TOKENS))
MARK = b"Benchmark question"  # stands in every request that is counted; a client's own trials lack it


@dataclass
class Counts:
    """Chat requests answered, of them those with MARK, most of these at once, and first arrival to last answer."""

    answered: int = 0
    marked: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    first: float = 0.0
    last: float = 0.0


class Connection(asyncio.Protocol):
    """HTTP/1.1 as far as a client of chat completions needs it: bodies of a stated length, connections kept."""

    def __init__(self, counts: Counts, delay: float) -> None:
        self._counts, self._delay = counts, delay
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            _, _, length = head.partition(b"content-length:")
            whole = end + 4 + (int(length.split(b"\r\n", 1)[0]) if length else 0)
            if len(self._buffer) < whole:
                return
            body, self._buffer = self._buffer[end + 4 : whole], self._buffer[whole:]
            self._asked(head.split(b" ", 2), body)

    def _asked(self, head: list[bytes], body: bytes) -> None:
        counts = self._counts
        if head[0] == b"post":
            if marked := MARK in body:
                counts.first = counts.first or time.monotonic()
                counts.in_flight += 1
                counts.most_in_flight = max(counts.most_in_flight, counts.in_flight)
            self._loop.call_later(self._delay, self._answer, body, marked)
        elif head[1] == b"/counts":
            self._send(b"200 OK", json.dumps(asdict(counts)).encode())
        else:
            self._send(b"404 Not Found", b"{}")

    def _answer(self, body: bytes, marked: bool) -> None:
        counts = self._counts
        self._send(b"200 OK", completion(body))
        counts.answered += 1
        if marked:
            counts.marked += 1
            counts.in_flight -= 1
            counts.last = time.monotonic()

    def _send(self, status: bytes, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(
                b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (status, len(body), body)
            )


def completion(body: bytes) -> bytes:
    """The answer to a request."""
    request = json.loads(body)
    asked = crc32(request["messages"][-1]["content"].encode()) + (request.get("seed") or 0)
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": f"{TEXT} {asked + i} \\boxed{{{(asked + i) % 10}}}"},
            "finish_reason": "stop",
        }
        for i in range(request.get("n") or 1)
    ]
    told = TOKENS * len(choices)
    usage = {"prompt_tokens": 300, "completion_tokens": told, "total_tokens": 300 + told}
    answer = {"id": f"chatcmpl-{asked}", "object": "chat.completion", "created": 1, "model": "test-model"}
    return json.dumps(answer | {"choices": choices, "usage": usage}).encode()


async def main(delay: float) -> None:
    """Serve until standard input ends."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # thousands of connections
    loop = asyncio.get_running_loop()
    counts = Counts()
    server = await loop.create_server(lambda: Connection(counts, delay), "127.0.0.1", 0, backlog=8192)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(float(sys.argv[1])))
