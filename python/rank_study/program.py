"""Runs the command line as a process of its own, so that a training or a diagnosis can be interrupted and resumed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable

#: Exit codes of the command line.
_WRONG_USAGE, _STOPPED = 2, 4


class ProgramError(RuntimeError):
    """A command failed. The message is its error line."""


class Stopped(ProgramError):
    """A command was stopped before its end. The same call continues it."""


def run(words: list[str], watch: Callable[[], None] | None = None, verbose: bool = False) -> str:
    """Runs `rank-study WORDS` and returns what it printed.

    Parameters
    ----------
    words
        The command and its flags.
    watch
        Called about five times per second while the command runs.
    verbose
        Whether the command's progress is printed on standard error.

    Raises
    ------
    ValueError
        The command refused its flags.
    ProgramError
        The command failed.
    """
    command = [sys.executable, "-m", "rank_study", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    printed: list[str] = []
    said: list[str] = []

    def read_output() -> None:
        assert process.stdout is not None
        printed.append(process.stdout.read())

    def read_progress() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            del said[:-50]
            if verbose:
                sys.stderr.write(line)

    readers = [threading.Thread(target=reader, daemon=True) for reader in (read_output, read_progress)]
    for reader in readers:
        reader.start()
    try:
        while True:
            try:
                code = process.wait(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                if watch is not None:
                    watch()
    except BaseException:
        # A notebook interrupts only the kernel. The command saves what it has.
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    for reader in readers:
        reader.join()
    if code == 0:
        return printed[0]
    errors = [line.removeprefix("error: ").strip() for line in said if line.startswith("error: ")]
    message = errors[-1] if errors else "".join(said[-5:]).strip() or f"exit code {code}"
    kind: type[Exception] = {_WRONG_USAGE: ValueError, _STOPPED: Stopped}.get(code, ProgramError)
    raise kind(message)
