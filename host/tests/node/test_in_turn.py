"""Many calls on one thread, each with a deadline of its own (BR-52, BR-57)."""

import threading

import pytest

from volumehost.mount.deadline import DeadlineExceededError
from volumehost.node.execution.in_turn import MOST_HANGING, in_turn


@pytest.fixture
def stuck():
    """Something that hangs until the test ends."""
    gate = threading.Event()
    yield lambda: gate.wait(60)
    gate.set()


def test_answers_come_in_order_and_errors_stand_where_they_belong():
    def ask(number):
        if number % 3 == 2:
            raise ValueError(number)
        return number * 10

    answers = in_turn(ask, range(6), seconds=20, what="asking")
    assert [repr(answer) for answer in answers] == ["0", "10", "ValueError(2)", "30", "40", "ValueError(5)"]
    assert in_turn(ask, (), seconds=20, what="asking nobody") == []


def test_one_thread_makes_all_the_calls():
    used = in_turn(lambda _number: threading.get_ident(), range(200), seconds=20, what="asking")
    assert len(set(used)) == 1
    assert used[0] != threading.get_ident()


def test_br52_a_call_that_hangs_is_left_behind_and_the_others_are_made(stuck):
    answers = in_turn(lambda number: stuck() if number == 1 else number, range(5), seconds=0.5, what="asking")
    assert isinstance(answers[1], DeadlineExceededError)
    assert [answers[index] for index in (0, 2, 3, 4)] == [0, 2, 3, 4]


def test_br52_after_a_few_that_hang_no_other_is_begun(stuck):
    begun = []

    def ask(number):
        begun.append(number)
        stuck()

    answers = in_turn(ask, range(100), seconds=0.05, what="asking")
    assert begun == list(range(MOST_HANGING))
    assert len(answers) == 100
    assert all(isinstance(answer, DeadlineExceededError) for answer in answers)
    assert "not asked" in str(answers[-1])


def test_an_answer_that_comes_too_late_disturbs_nobody(stuck):
    gates = [threading.Event(), threading.Event()]

    def ask(number):
        if number == 0:
            gates[0].wait(60)
            gates[1].set()
            return "late"
        return number

    answers = in_turn(ask, [0, 1], seconds=0.5, what="asking")
    gates[0].set()
    assert gates[1].wait(30)
    assert answers[1] == 1
    assert isinstance(answers[0], DeadlineExceededError)


def test_what_ends_a_process_elsewhere_is_only_an_answer_here():
    def leave(_number):
        raise SystemExit(3)

    (answer,) = in_turn(leave, [1], seconds=20, what="asking")
    assert isinstance(answer, SystemExit)
