"""Attributes that are computed once, also while other threads compute them and processes are forked."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import warnings

from structpe.computed import computed
from tests.modules import modules


class Counted:
    """An object that counts how often its attribute is computed, which waits if it is to."""

    begun, goes_on = threading.Event(), threading.Event()

    def __init__(self, waits: bool = False) -> None:
        self.waits, self.count = waits, 0

    @computed
    def value(self) -> list[int]:
        """A new list."""
        self.count += 1
        if self.waits:
            self.begun.set()
            assert self.goes_on.wait(60)
        return [self.count]


def test_it_is_computed_once_for_each_object_and_kept_with_it() -> None:
    one, other = Counted(), Counted()
    assert one.value is one.value
    assert (one.value, one.count, other.count) == ([1], 1, 0)
    assert other.value is not one.value
    assert pickle.loads(pickle.dumps(one)).__dict__ == {"waits": False, "count": 1, "value": [1]}
    assert Counted.value.__doc__ == "A new list."
    assert isinstance(Counted.value, computed)


def test_threads_get_one_value() -> None:
    made, found = Counted(waits=True), list[list[int]]()
    Counted.begun.clear()
    Counted.goes_on.clear()
    threads = [threading.Thread(target=lambda: found.append(made.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert Counted.begun.wait(60)
    Counted.goes_on.set()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert all(each is made.value for each in found)


def test_a_fork_while_another_thread_computes_does_not_wait_for_it() -> None:
    Counted.begun.clear()
    Counted.goes_on.clear()
    thread = threading.Thread(target=lambda: Counted(waits=True).value)
    thread.start()
    assert Counted.begun.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that is what is tested
        pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # ends it with its number
        os._exit(0 if Counted().value == [1] else 1)
    _, status = os.waitpid(pid, 0)
    Counted.goes_on.set()
    thread.join(60)
    assert os.waitstatus_to_exitcode(status) == 0


def test_nothing_has_the_attributes_of_functools_whose_lock_a_fork_inherits() -> None:
    named = {module.name for module in modules() if "cached_property" in module.text}
    assert named == {"structpe.computed"}, "use structpe.computed.computed"  # whose docstring says why
