"""The server for health and metrics: real sockets, both families, callers that do not behave."""

import http.client
import socket

import pytest

from volumehost.daemon.http import MOST_CALLERS, Answer, HttpAddressError, HttpServer, Request, answer, parse_address


def _echo(request: Request) -> Answer:
    return Answer.of_text(200, f"{sorted(request.query)} {request.accept}")


def _broken(request: Request) -> Answer:
    raise RuntimeError("no luck")


ROUTES = {"/echo": _echo, "/broken": _broken}


@pytest.fixture(params=["127.0.0.1:0", "[::1]:0"])
def server(request):
    try:
        made = HttpServer(request.param)
    except HttpAddressError as error:
        pytest.skip(f"no such address here: {error}")
    made.start(ROUTES)
    yield made
    made.close()


def _connect(server):
    return http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_routes_are_served(server, method):
    connection = _connect(server)
    connection.request(method, "/echo?verbose&exclude=a", headers={"Accept": "text/plain"})
    response = connection.getresponse()
    body = response.read().decode()
    assert (response.status, response.getheader("Content-Type")) == (200, "text/plain; charset=utf-8")
    assert body == ("['exclude', 'verbose'] text/plain" if method == "GET" else "")
    connection.close()


def test_what_is_not_there_and_what_fails(server, caplog):
    for path, status, words in (("/other", 404, "there are /broken, /echo"), ("/broken", 500, "no luck")):
        connection = _connect(server)
        connection.request("GET", path)
        response = connection.getresponse()
        assert (response.status, words in response.read().decode()) == (status, True)
        connection.close()
    assert "could not be answered" in caplog.text


def test_other_methods_are_refused(server):
    connection = _connect(server)
    connection.request("POST", "/echo", b"{}")
    assert connection.getresponse().status == 501
    connection.close()


def test_callers_that_say_nothing_take_no_more_than_their_share(server):
    """As many as are served at once say nothing: the next is turned away, and served when one of them goes."""
    host, port = server._address
    silent = [socket.create_connection((host, port)) for _ in range(MOST_CALLERS)]
    outcomes = set()
    for _ in range(MOST_CALLERS + 1):
        with socket.create_connection((host, port)) as refused:
            refused.settimeout(30)
            outcomes.add(refused.recv(10))
    assert outcomes == {b""}
    for each in silent:
        each.close()
    status = None
    while status != 200:  # until the server has seen that they went
        connection = _connect(server)
        try:
            connection.request("GET", "/echo")
            status = connection.getresponse().status
        except (http.client.HTTPException, OSError):
            continue
        finally:
            connection.close()


def test_the_port_is_given_back():
    first = HttpServer("127.0.0.1:0")
    first.start(ROUTES)
    address = first.url.removeprefix("http://")
    with pytest.raises(HttpAddressError, match="Address already in use"):
        HttpServer(address)
    first.close()
    HttpServer(address).close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), ("0.0.0.0:65535", ("0.0.0.0", 65535))],
)
def test_addresses(text, expected):
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "80", ":80", "localhost:80", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "1:2:3"]
)
def test_no_addresses(text):
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:10258|IPv4 or IPv6"):
        parse_address(text)


def test_whoever_is_reachable_from_elsewhere_is_told(caplog):
    HttpServer("0.0.0.0:0").close()
    assert "can be read by whoever reaches it" in caplog.text


def test_an_answer_without_a_server():
    assert answer(ROUTES, "/echo?a=1", "x").body == b"['a'] x"
