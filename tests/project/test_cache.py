"""The cache in memory: keys, owners, the limit of entries, threads and forks."""

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from parflex.cache import cached, clear


@pytest.fixture(autouse=True)
def empty():
    clear()
    yield
    clear()


@pytest.fixture
def count():
    return itertools.count().__next__


def test_a_value_is_built_once_for_each_kind_and_key(count):
    assert [cached("a", 1, count), cached("a", 1, count), cached("a", 2, count), cached("b", 1, count)] == [0, 0, 1, 2]


def test_the_key_none_stores_nothing(count):
    assert [cached("a", None, count), cached("a", None, count)] == [0, 1]


def test_none_is_a_value():
    built = []
    assert cached("a", 1, lambda: built.append(1)) is None
    assert cached("a", 1, lambda: built.append(1)) is None
    assert built == [1]


def test_an_error_stores_nothing(count):
    with pytest.raises(ZeroDivisionError):
        cached("a", 1, lambda: 1 // 0)
    assert cached("a", 1, count) == 0


def test_the_least_recently_used_entry_is_removed(count):
    for key in (1, 2, 1, 3):
        cached("a", key, count, limit=2)
    assert [cached("a", key, count, limit=2) for key in (1, 3, 2)] == [0, 2, 3]


def test_equal_owners_are_different_keys_and_live_as_long_as_the_entry(count):
    for _ in range(5):
        cached("a", "list", count, owners=([1, 2],))  # a freed list would give its id to the next one
    assert count() == 5


def test_threads_get_the_value_that_was_stored_first():
    barrier = threading.Barrier(8)

    def build():
        barrier.wait()
        return object()

    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda _: cached("a", 1, build), range(8)))
    assert len(set(map(id, values))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_can_use_the_cache_while_another_thread_does(count):
    ended = threading.Event()

    def busy():
        while not ended.is_set():
            cached("a", 1, count)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                cached("b", 1, count)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        thread.join()
