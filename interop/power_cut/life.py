"""One run of a server on a recorded folder (a life), and the power cuts that could have ended it."""

import asyncio
import os
import random
import shutil
import signal
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from harness.server import Server, port_free, server_under_test, wait_until_listening

from power_cut import disk, journal, ledger
from power_cut.clients import Place
from power_cut.disk import MODES, Disk, Forgetting
from power_cut.journal import CREATED, Entry, Kind
from power_cut.ledger import Broken, Ledger
from power_cut.workloads import ALL, Workload

# Guards against hanging, not expected times.
STOP_SECONDS_MAX = 30
CHECK_SECONDS_MAX = 90


@dataclass(frozen=True)
class Setting:
    """How a server is started, and what its clients do."""

    seed: int
    workloads: tuple[str, ...]
    seconds: float
    encryption: str | None
    sync_micros: int

    def __str__(self) -> str:
        sealed = f", encrypted ({self.encryption})" if self.encryption else ""
        return f"{', '.join(self.workloads)}; syncs take {self.sync_micros} µs more{sealed}"


@dataclass(frozen=True)
class Cut:
    """A power cut: the entry of the journal after which it happens, and how the disk forgets."""

    index: int
    mode: str
    seed: str

    @property
    def forgetting(self) -> Forgetting:
        return next(mode for mode in MODES if mode.name == self.mode)


class Running:
    """A running server on a store folder. `watched` has the environment of the library that records it, if any."""

    def __init__(self, setting: Setting, folder: str, store: str, watched: dict[str, str] | None = None):
        self.place = Place(port_free(), port_free())
        key = f', key: "secret", cipher: {setting.encryption}' if setting.encryption else ""
        config = os.path.join(folder, "server.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                f'server_name: "power-cut"\njetstream {{ store_dir: "{store}"{key} }}\n'
                f'mqtt {{ listen: "127.0.0.1:{self.place.mqtt_port}" }}\n'
            )
        self.server = Server(server_under_test(), "-c", config, port=self.place.port, environment=watched)

    def __enter__(self) -> "Running":
        self.server.start()
        wait_until_listening(self.place.mqtt_port, self.server.process, self.server.output)
        return self

    def __exit__(self, *_):
        self.server.__exit__()


class Life:
    """One life. Its folder holds the initial store (`base`), the journal, and the ledgers."""

    def __init__(self, setting: Setting, folder: str):
        self.setting = setting
        self.folder = folder
        self.base = os.path.join(folder, "base")
        self.entries: list[Entry] = []
        self.ledgers: dict[str, Ledger] = {}

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def workload(self, name: str) -> Workload:
        return ALL[name](name, self.setting.seed)

    def live(self, library: str, ledgers: dict[str, Ledger]):
        """Starts the server, runs the workloads, and stops the server while they continue."""
        os.makedirs(self.base, exist_ok=True)
        shutil.copytree(self.base, self.path("store"))
        watched = {
            "LD_PRELOAD": library,
            "FORGETFUL_ROOT": self.path("store"),
            "FORGETFUL_JOURNAL": self.path("journal"),
            "FORGETFUL_SYNC_MICROS": str(self.setting.sync_micros),
        }
        self.ledgers = {name: ledgers.get(name, Ledger()) for name in self.setting.workloads}
        with Running(self.setting, self.folder, self.path("store"), watched) as running:
            asyncio.run(self.play(running))
        ledger.save(self.ledgers, self.path("ledgers.json"))
        self.load()
        self.verify()
        shutil.rmtree(self.path("store"))

    async def play(self, running: Running):
        # The client reports in many ways that the server is gone.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        tasks = {
            name: asyncio.create_task(self.workload(name).run(running.place, self.ledgers[name]))
            for name in self.setting.workloads
        }
        done, _ = await asyncio.wait(tasks.values(), timeout=self.setting.seconds, return_when=asyncio.FIRST_COMPLETED)
        is_alive = running.server.process.poll() is None
        # The server is stopped gracefully under traffic. So cuts can hit its shutdown, too, and no call is half
        # recorded.
        running.server.signal(signal.SIGTERM)
        status = await asyncio.to_thread(running.server.process.wait, STOP_SECONDS_MAX)
        for task in tasks.values():
            task.cancel()
        await asyncio.wait(tasks.values())
        if not is_alive or status != 0:
            raise Broken(f"the server ended with {status}: {running.server.output()[-2000:]}")
        for name, task in tasks.items():
            # A task that ended only after the server was stopped has not failed.
            error = None if task.cancelled() else task.exception()
            if task in done:
                raise RuntimeError(f"workload {name} ended: {error!r}") from error

    def load(self):
        self.entries = journal.read(self.path("journal"))
        self.ledgers = ledger.load(self.path("ledgers.json"))

    def verify(self):
        """Checks that the journal is complete: replayed to its end it gives the real folder, byte for byte."""
        whole = Disk(self.base)
        for entry in self.entries:
            whole.play(entry)
        found = disk.difference(whole.newest(), self.path("store"))
        if found:
            raise RuntimeError(f"the journal of {self.folder} is not complete: {found}")

    def choose(self, count: int, seed: random.Random, mode_part: str) -> list[Cut]:
        """Draws cuts and returns them in order. Only modes whose name contains `mode_part` are used."""
        modes = [mode for mode in MODES if mode_part in mode.name]
        last = len(self.entries) - 1
        names = {Kind.RENAME, Kind.UNLINK, Kind.MKDIR, Kind.RMDIR}
        renamed = [at for at, entry in enumerate(self.entries) if entry.kind in names or is_creation(entry)]
        times = [entry.nanos for entry in self.entries]
        cuts = []
        for _ in range(count):
            match seed.choice(("entry", "entry", "time", "name")):
                case "entry":
                    index = seed.randrange(last + 1)
                case "time":
                    time = seed.randrange(times[0], times[-1] + 1)
                    index = next((at - 1 for at, nanos in enumerate(times) if nanos > time), last)
                case _:
                    index = seed.choice(renamed) + seed.randrange(-2, 6)
            index = min(max(index, 0), last)
            mode = seed.choices(modes, [mode.weight for mode in modes])[0]
            cuts.append(Cut(index, mode.name, f"{seed.getrandbits(64):016x}"))
        return sorted(cuts, key=lambda cut: cut.index)

    def played(self, cuts: list[Cut]) -> Iterator[tuple[Cut, Disk]]:
        """Yields each cut with the disk at that moment. The cuts must be in order."""
        at = Disk(self.base)
        for cut in cuts:
            while at.played <= cut.index:
                at.play(self.entries[at.played])
            yield cut, at

    def known(self, cut: Cut) -> dict[str, Ledger]:
        """Returns what clients knew just before the entry that follows the cut."""
        following = cut.index + 1
        time = self.entries[following].nanos - 1 if following < len(self.entries) else ledger.now()
        return {name: found.until(time) for name, found in self.ledgers.items()}

    def rebuild(self, at: Disk, cut: Cut, folder: str):
        shutil.rmtree(folder, ignore_errors=True)
        disk.write(at.left(cut.forgetting, random.Random(cut.seed)), folder)

    def check(self, at: Disk, cut: Cut) -> tuple[list[str], int]:
        """Checks one cut. Returns the broken promises, and the number of promises that were to be kept."""
        folder = self.path("cut")
        self.rebuild(at, cut, folder)
        known = self.known(cut)
        count = sum(op.is_granted for found in known.values() for op in found.ops)
        try:
            with Running(self.setting, self.folder, folder) as running:
                broken = asyncio.run(self.check_all(running, known))
        except RuntimeError as error:
            broken = [f"the server does not start: {error}"]
        shutil.rmtree(folder)
        return broken, count

    async def check_all(self, running: Running, known: dict[str, Ledger]) -> list[str]:
        names = list(known)
        checks = [
            asyncio.wait_for(self.workload(name).check(running.place, known[name].ops), CHECK_SECONDS_MAX)
            for name in names
        ]
        found = await asyncio.gather(*checks, return_exceptions=True)
        broken = [f"{name}: {why(error)}" for name, error in zip(names, found) if error is not None]
        if running.server.process.poll() is not None:
            broken.append("the server ended during the check")
        if broken:
            lines = running.server.output().splitlines()
            broken += [f"log: {line}" for line in lines if "[ERR]" in line or "[WRN]" in line][:3]
        return broken


def is_creation(entry: Entry) -> bool:
    return entry.kind == Kind.OPEN and bool(entry.flags & CREATED)


def why(error: BaseException) -> str:
    if isinstance(error, Broken):
        return str(error)
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
        raise error
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "power_cut" in frame.filename]
    where = "".join(f", {os.path.basename(frame.filename)}:{frame.lineno}" for frame in own)
    return f"{type(error).__name__}: {error}{where}"


def to_json(value: Setting | Cut) -> dict:
    return asdict(value)
