"""Runs the commands of the book and checks their output.

The pages of docs/tutorials, docs/how-to, and docs/explanation are run. A block of `console` has commands after `$ `;
the lines below a command are lines of its output. Each page runs with a separate, empty home folder. A command
that ends with `&` runs until the end of its page. Any other command must exit with 0 and print the lines below it.
Default ports in a page (PORTS) are replaced by free ones. A block of `sh` is not run, but the program must know its
commands and their flags. A block of `conf` is a whole configuration, which the program must accept. Rust code runs
in the tests of fanline-server, which must list the page.

The commands of README.md are run as well; a command that does not end by itself is stopped. The program must also
know the commands of all other pages in docs. Links between all documents of the repository must lead to a file and
a heading. Each page of docs must be in the summary or linked from another page of docs.
"""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from harness.checks import check, until
from harness.server import port_free

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROGRAM = Path(os.environ["FANLINE"]).resolve()
# Folders of docs whose commands are run.
SHELVES = ["tutorials", "how-to", "explanation"]
SUMMARY = ROOT / "docs" / "SUMMARY.md"
# Other pages with commands; the program must know these commands.
README = ROOT / "README.md"
OTHERS = [README, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/reference").glob("*.md"))]
PAGES = sorted(page for shelf in SHELVES for page in (DOCS / shelf).rglob("*.md"))
# The file that lists the pages whose Rust code is run.
DOCTESTS = ROOT / "crates" / "fanline-server" / "src" / "lib.rs"
# Allowed languages of blocks; `csharp` and `text` are only shown.
LANGUAGES = ["console", "sh", "conf", "rust", "csharp", "text"]
SECONDS_MAX = 30
# Default ports of monitoring and MQTT. An environment variable sets the client port for the tools.
PORTS = ["8222", "1883"]


def commands(text):
    """Returns each command with the lines that it must print."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.strip():
                found[-1][1].append(line)
    return found


def type_page(page, program):
    """Runs the commands of a page. Returns the failures."""
    wrong = []
    with tempfile.TemporaryDirectory() as home:
        port = port_free()
        environment = stage(home, port, program)
        background = []
        text = page.read_text()
        for usual in PORTS:
            text = re.sub(rf"\b{usual}\b", str(port_free()), text)
        try:
            for command, expected in commands(text):
                if command.endswith(" &"):
                    line = command.removesuffix(" &")
                    background.append(start(line, home, environment, port))
                    continue
                if command.startswith("wait "):
                    at = int(command.removeprefix("wait %")) - 1
                    code = background[at].wait(SECONDS_MAX)
                    wrong += [f"{page.name}: {command}: exit code {code}"] if code else []
                    continue
                wrong += type_one(page.name, command, expected, home, environment)
        finally:
            stop(background)
    return wrong


def stage(home, port, program):
    """Returns the environment of a shell with an empty home, in which `fanline` is the program, and
    `fanline serve` uses a free port."""
    folder = Path(home) / "programs"
    folder.mkdir()
    wrapper = folder / "fanline"
    wrapper.write_text(
        "#!/bin/bash\n"
        f'[ "$1" = serve ] && shift && exec "{program}" serve --listen 127.0.0.1:{port} "$@"\n'
        f'exec -a "$0" "{program}" "$@"\n'
    )
    wrapper.chmod(0o755)
    environment = dict(
        os.environ,
        HOME=home,
        PATH=f"{folder}:{os.environ['PATH']}",
        FANLINE_URL=f"nats://127.0.0.1:{port}",
    )
    environment.pop("XDG_DATA_HOME", None)
    return environment


def stop(background):
    """Kills the started processes, and clears the list."""
    for process in background:
        # The process group includes processes that the shell has started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    background.clear()


def accepts(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True


def start(line, home, environment, port, exports=""):
    """Starts a command, and waits until its server accepts connections or its subscription is confirmed."""
    said = tempfile.TemporaryFile()
    process = subprocess.Popen(
        ["bash", "-c", f"{exports}exec {line}"],
        start_new_session=True,
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
    )
    # Without this, a process that has ended would stay as a zombie, and a page that waits for its end would hang.
    threading.Thread(target=process.wait, daemon=True).start()

    def is_ready():
        if "serve" in line:
            return accepts(port)
        return re.search(rb"^(Subscribed to|Answering requests)", os.pread(said.fileno(), 65_536, 0), re.MULTILINE)

    until(lambda: process.poll() is not None or is_ready(), f"not ready: {line}")
    return process


def type_one(page, command, expected, home, environment):
    try:
        outcome = subprocess.run(
            ["bash", "-c", command],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return [f"{page}: {command}: does not end"]
    seen = outcome.stdout + outcome.stderr
    wrong = []
    if outcome.returncode != 0:
        wrong.append(f"{page}: {command}: exit code {outcome.returncode}\n{seen}")
    for line in expected:
        if line not in seen:
            wrong.append(f"{page}: {command}: no {line!r} in\n{seen}")
    return wrong


def look_at_blocks(page, program):
    """Returns blocks that nothing checks, and unknown commands."""
    text, name = page.read_text(), page.relative_to(DOCS)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    wrong = [f"{name}: a block of {language}" for language, _ in blocks if language not in LANGUAGES]
    if any(language == "rust" for language, _ in blocks) and f'"{name}"' not in DOCTESTS.read_text():
        wrong.append(f"{name}: nothing runs its Rust code")
    wrong += [why for language, body in blocks if language == "conf" for why in look_at_configuration(name, body, program)]
    return wrong + look_at_commands(page, program)


def look_at_configuration(name, body, program):
    """Returns the program's complaint about a configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(body)
        file.flush()
        outcome = subprocess.run([program, "config", "check", file.name], capture_output=True, text=True)
    return [f"{name}: {outcome.stdout}{outcome.stderr}"] if outcome.returncode else []


def look_at_commands(page, program):
    """Returns the commands in a page's `sh` blocks that the program does not know."""
    wrong = []
    for body in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for words in (words for line in body.splitlines() for words in split(line)):
            if words[:1] != ["fanline"]:
                continue
            # With `--help` as the last word, the program fails at the first unknown word before it.
            outcome = subprocess.run([program, *words[1:], "--help"], capture_output=True, text=True)
            if outcome.returncode != 0:
                wrong.append(f"{page.relative_to(ROOT)}: {' '.join(words)}: {outcome.stderr}")
    return wrong


def split(line):
    """Returns the commands of one line, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found, is_target = [[]], False
    for word in lexer:
        if word in ("&&", "||", "|", ";", "&"):
            found.append([])
        elif word and set(word) <= set("<>"):
            is_target = True
            continue
        elif not is_target:
            found[-1].append(word)
        is_target = False
    return found


def prose(page):
    """Returns a page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Returns the anchors of a page's headings."""
    found = []
    for heading in re.findall(r"^#{1,6} +(.*)$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.strip())
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        repeated = found.count(name)
        found.append(f"{name}-{repeated}" if repeated else name)
    return found


def follow_links(page):
    """Returns the links without a target."""
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        is_there = target.exists() and (not anchor or target.suffix != ".md" or anchor in anchors(target))
        wrong += [] if is_there else [f"{page.relative_to(ROOT)}: {link} leads nowhere"]
    return wrong


def targets(page):
    """Returns the files that a page links to."""
    names = (link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()))
    return {(page.parent / name).resolve() for name in names if name and not re.match(r"[a-z]+:", name)}


def test_links():
    """Checks that links between documents lead to a target, and that each page of docs can be reached."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    pages = [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]
    check(len(pages) > len(OTHERS), "there are hardly any documents")
    wrong = [why for page in pages for why in follow_links(page)]
    book = [page for page in pages if DOCS in page.parents]
    linked = {target for page in book for target in targets(page) if target != page}
    wrong += [f"{page.relative_to(ROOT)}: no page links to it" for page in book if page != SUMMARY and page not in linked]
    check(not wrong, "\n".join(wrong))


def readme_lines():
    """Yields the command lines of README.md, each with its standard input."""
    part = README.read_text().split("### The server\n")[1].split("\n### ")[0]
    lines = "".join(re.findall(r"^```sh\n(.*?)^```", part, re.MULTILINE | re.DOTALL)).splitlines()
    while lines:
        line = lines.pop(0)
        if "<<'END'" in line:
            end = lines.index("END")
            line, lines = "\n".join([line, *lines[: end + 1]]), lines[end + 1 :]
        if line.strip():
            yield line


def test_readme():
    """Runs the commands of README.md in order. Commands that do not end by themselves are stopped at the end."""
    wrong, background, exports = [], [], ""
    with tempfile.TemporaryDirectory() as home:
        port = port_free()
        environment = stage(home, port, PROGRAM)
        (Path(home) / "cup.png").write_text("a picture")
        try:
            for line in readme_lines():
                command = line.split("#")[0] if "<<" not in line else line
                command = command.replace("@localhost", f"@localhost:{port}").strip()
                if command.startswith("export "):
                    exports = command + "\n"
                elif goes_on := re.search(r"fanline (serve|sub|reply)\b", command):
                    if goes_on[1] == "serve":
                        # The second server replaces the first one.
                        stop(background)
                    background.append(start(command, home, environment, port, exports))
                    code = background[-1].poll()
                    wrong += [f"{command}: has ended with {code}"] if code is not None else []
                else:
                    ends = "watch" not in command
                    command = command if ends else f"timeout 2 bash -c {shlex.quote(command)} || test $? = 124"
                    wrong += type_one(README.name, exports + command, [], home, environment)
        finally:
            stop(background)
    check(not wrong, "\n".join(wrong))


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands(page):
    wrong = look_at_commands(page, PROGRAM)
    check(not wrong, "\n".join(wrong))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page(page):
    wrong = look_at_blocks(page, PROGRAM)
    if any(commands(page.read_text())):
        wrong += type_page(page, PROGRAM)
    check(not wrong, "\n".join(wrong))
