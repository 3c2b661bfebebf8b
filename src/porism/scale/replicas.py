"""The driver's side: replicas on a Ray cluster as one Model, with a lane of the router's for each.

An actor that is gone is replaced at once. Its calls in flight fail, and the router asks them again of the other
replicas, which do its share until the new one runs; where there is no other, they wait for it here. The hash that
gives a prefix its home knows replicas by number, so a prefix comes back to the one that took the place.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from porism import __version__
from porism.config import Placement
from porism.errors import ConfigError, InputError, ModelError, PorismError
from porism.scale.cluster import Cluster, Gone
from porism.scale.worker import Facts, Failed, Place, Setup
from porism.types import Call, Model, Reply

ROOM = 600.0  # seconds that a replica waits for room on the cluster
SILENCE = 30.0  # of them before the user is told
START = 3600.0  # seconds that loading a model may take
LATE = 30.0  # seconds that the first replica of a run waits for the others
STARTS = 3  # that may be lost in a row
LOSSES = 3  # that a call may live through where no other replica runs


@dataclass(frozen=True, slots=True)
class _Life:
    """An actor that runs, and where."""

    actor: Any
    place: Place
    facts: Facts


def open_replicas(
    cluster: Cluster,
    spec: str,
    *,
    base_url: str | Sequence[str] | None = None,
    context: int | None = None,
    concurrency: int | None = None,
) -> Replicas:
    """The model that `provider/model-id` names, as replicas on the cluster, to be entered before use.

    base_url: servers that replicas speak to, in turn; without one, vllm/... runs vLLM in each. The rest is as in
    open_model, for each replica. Raises ConfigError for settings of vLLM where none is started.
    """
    asked = cluster.placement
    setup = set_up(asked, spec, base_url=base_url, context=context, concurrency=concurrency)
    return Replicas(setup, cluster, asked.replicas)


def set_up(
    asked: Placement,
    spec: str,
    *,
    base_url: str | Sequence[str] | None,
    context: int | None,
    concurrency: int | None,
) -> Setup:
    """The engine of a replica, as `open_replicas` says."""
    urls = (base_url,) if isinstance(base_url, str) else tuple(base_url or ())
    setup = Setup(spec=spec, base_url=urls, context=context, concurrency=concurrency, cpus=asked.cpus)
    if setup.starts_vllm:
        gpus = 1 if asked.gpus is None else asked.gpus
        setup = structs.replace(setup, gpus=gpus, engine_args=_words(asked.engine_args))
    elif asked.engine_args or asked.gpus:
        raise ConfigError(
            f"{spec}: GPUs and engine arguments are for vLLM that runs in the replicas; leave --gpus and --engine-args "
            "out, or write vllm/MODEL without --base-url"
        )
    return setup


def _words(arguments: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(arguments))
    except ValueError as error:
        raise ConfigError(f"engine arguments {arguments!r}: {error}") from None


class Replicas:
    """`count` replicas of the engine that `setup` describes, as one Model. Entering places and starts them.

    servers: by name, "replica 1" onwards. Raises ConfigError where they disagree about the model, ModelError (fatal)
    where one cannot start. One that waits for room does not hold the others up: it joins later.
    """

    def __init__(self, setup: Setup, cluster: Cluster, count: int) -> None:
        self.name = setup.spec
        self.identity, self.chain = "", False
        self.concurrency, self.max_n = 1, 1
        self.context: int | None = None
        self.setup, self.cluster = setup, cluster
        self._replicas = {f"replica {i + 1}": _Replica(i, self) for i in range(count)}
        self._known: dict[str, tuple[str, str]] = {}  # fact -> (what, told by which replica)
        self._endpoints: set[str] = set()

    @property
    def servers(self) -> Mapping[str, Model]:
        return dict(self._replicas)

    @property
    def hosts(self) -> list[str]:
        return [*self.cluster.hosts, *sorted(self._endpoints)]

    async def __aenter__(self) -> Replicas:
        replicas = self._replicas.values()
        self.cluster.check(self.setup)
        self.cluster.note(f"{self.name}: starting {self.cluster.placement}")
        try:
            starts = [replica.begin() for replica in replicas]
            await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(starts, timeout=LATE, return_when=asyncio.FIRST_EXCEPTION)
            for start in starts:
                if start.done():
                    start.result()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.gather(*(replica.end() for replica in self._replicas.values()))

    async def generate(self, call: Call) -> Reply:
        """The completions of `call` from the first replica."""
        return await next(iter(self._replicas.values())).generate(call)

    async def probe(self) -> list[str]:
        """What the trial of each running replica found; what all found is told once."""
        trials = [replica.try_out() for replica in self._replicas.values() if replica.runs]
        found = [trial for trial in await asyncio.gather(*trials) if trial is not None]
        if found:
            self.max_n = min(facts.max_n for _, facts in found)
            self.setup = structs.replace(self.setup, max_n=self.max_n)
        return list(dict.fromkeys(warning for warnings, _ in found for warning in warnings))

    def others_run(self, replica: _Replica) -> bool:
        """Whether another one than this can take calls."""
        return any(other.runs for other in self._replicas.values() if other is not replica)

    def agree(self, label: str, place: Place, facts: Facts) -> None:
        """Take note of what a replica serves. ConfigError where it is not what the others serve."""
        if place.porism != __version__:
            raise ConfigError(
                f"porism {place.porism} is installed on {place.node}, and {__version__} here: give all machines of the "
                "cluster the same version"
            )
        for fact, what in {"the model": facts.identity, **facts.weights}.items():
            known, where = self._known.setdefault(fact, (what, label))
            if known != what:
                raise ConfigError(
                    f"the replicas of {self.name} serve different models: {fact} is {known} for {where}, and {what} "
                    f"for {label}; give all machines of the cluster the same one"
                )

    def learn(self, facts: Facts) -> None:
        """What is the same for all of them; replicas still to come are taken to be alike."""
        self.identity, self.chain, self.context = facts.identity, facts.chain, facts.context
        self.concurrency = facts.concurrency * len(self._replicas)
        if self.setup.max_n is None:
            self.max_n = facts.max_n
        if facts.host is not None:
            self._endpoints.add(facts.host)
        for replica in self._replicas.values():
            replica.identity, replica.chain, replica.context = facts.identity, facts.chain, facts.context
            replica.concurrency = facts.concurrency


class _Replica:
    """One lane's Model: an actor now, and the ones that take its place."""

    def __init__(self, number: int, fleet: Replicas) -> None:
        self.name, self.label = fleet.name, f"replica {number + 1}"
        self.identity, self.chain = "", False
        self.concurrency = 1
        self.context: int | None = None
        self._number, self._fleet = number, fleet
        self._start: asyncio.Task[_Life] | None = None
        self._actor: Any = None

    @property
    def max_n(self) -> int:
        return self._fleet.max_n

    @max_n.setter
    def max_n(self, value: int) -> None:
        self._fleet.max_n = value

    @property
    def runs(self) -> bool:
        return self._start is not None and self._start.done() and self._start.exception() is None

    async def __aenter__(self) -> _Replica:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def begin(self) -> asyncio.Task[_Life]:
        """Place an actor and start its engine, beside whatever else goes on."""
        self._start = asyncio.ensure_future(self._live())
        # Whoever asks next is told the reason; a replica that nobody asks any more needs none.
        self._start.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._start

    async def end(self) -> None:
        """Give the actor up, its engine and processes with it."""
        ran = self.runs
        if self._start is not None:
            self._start.cancel()
            await asyncio.gather(self._start, return_exceptions=True)
        if self._actor is not None and ran:
            await self._fleet.cluster.dismiss(self._actor)
        elif self._actor is not None:
            self._fleet.cluster.kill(self._actor)
        self._start = self._actor = None

    async def generate(self, call: Call) -> Reply:
        """One attempt. Raises ModelError: a transient one where the replica is lost and others run."""
        losses = 0
        while True:
            life = await self._living()
            try:
                answer: Reply | Failed = await self._fleet.cluster.ask(life.actor.generate, call)
                if isinstance(answer, Reply):
                    return answer
                if not (self._fleet.setup.owns_engine and answer.fatal and answer.kind == "connection"):
                    raise _model_error(answer.error())
                raise Gone(answer.message)  # the engine, and so the actor is of no use
            except Gone as gone:
                losses += 1
                self._lost(life, gone)
                if losses > LOSSES or self._fleet.others_run(self):
                    raise _transient(f"it was lost on {life.place.node}: {gone}") from None

    async def probe(self) -> list[str]:
        found = await self.try_out()
        return found[0] if found is not None else []

    async def try_out(self) -> tuple[list[str], Facts] | None:
        """What a trial found; None where the replica was lost meanwhile. Raises ModelError where it is fatal."""
        life = await self._living()
        try:
            found: tuple[list[str], Facts] | Failed = await self._fleet.cluster.ask(life.actor.probe)
        except Gone as gone:
            self._lost(life, gone)
            return None
        if isinstance(found, Failed):
            raise found.error(self._where(life.place))
        return found

    async def _living(self) -> _Life:
        start = self._start or self.begin()
        if not start.done():
            if self._fleet.others_run(self):
                raise _transient("it is starting")
            await asyncio.wait({start})
        if (fault := start.exception()) is not None:
            self._start = None  # the next call tries anew
            raise _model_error(fault) if isinstance(fault, PorismError) else fault
        return start.result()

    def _lost(self, life: _Life, why: Gone) -> None:
        if self._start is not None and self.runs and self._start.result() is life:
            self._fleet.cluster.note(f"{self._where(life.place)} was lost, and is replaced: {why}")
            self._fleet.cluster.kill(life.actor)
            self.begin()

    async def _live(self) -> _Life:
        """An actor with a started engine. Raises ModelError (fatal), or ConfigError."""
        cluster, setup = self._fleet.cluster, self._fleet.setup
        why: Gone | None = None
        for _ in range(STARTS):
            self._actor = actor = cluster.actor(setup, self._number)
            try:
                place = await self._placed(actor)
                where = self._where(place)
                facts: Facts | Failed = await cluster.ask(actor.start, limit=START)
                if isinstance(facts, Failed):
                    raise facts.error(where)
                self._fleet.agree(where, place, facts)
            except Gone as gone:
                why = gone
            except TimeoutError:
                cluster.kill(actor)
                raise self._unstarted(f"it took longer than {START:.0f} s") from None
            except PorismError:
                cluster.kill(actor)
                raise
            else:
                self._fleet.learn(facts)
                cluster.note(f"{where} runs")
                return _Life(actor, place, facts)
        raise self._unstarted(f"it was lost {STARTS} times: {why}")

    async def _placed(self, actor: Any) -> Place:
        """Where the actor runs, once there is room for it."""
        cluster = self._fleet.cluster
        asked = asyncio.ensure_future(cluster.ask(actor.place, limit=ROOM))
        try:
            done, _ = await asyncio.wait({asked}, timeout=SILENCE)
            if not done:
                cluster.note(f"{self.label} is not placed yet: it needs {cluster.share(self._fleet.setup)}")
            place: Place = await asked
        except TimeoutError:
            raise self._unstarted(
                f"the Ray cluster had no room in {ROOM:.0f} s for {cluster.share(self._fleet.setup)}; "
                "ask for fewer --replicas"
            ) from None
        finally:
            asked.cancel()
        return place

    def _unstarted(self, why: str) -> ModelError:
        return ModelError(f"{self.label} could not be started: {why}", fatal=True, kind="start")

    def _where(self, place: Place) -> str:
        return f"{self.label} on {place.node}"


def _transient(message: str) -> ModelError:
    return ModelError(message, retry="transient", kind="connection")


def _model_error(error: PorismError) -> ModelError:
    """The error as one of a call: what the user has to mend stands in the way of every call."""
    if isinstance(error, ModelError):
        return error
    return ModelError(
        str(error), fatal=True, kind="other_model" if isinstance(error, InputError) else "model"
    )


__all__ = ["Replicas", "open_replicas"]
