"""How a peer stands, told on a port of its own host: `/status` (JSON), `/metrics` (Prometheus), `/health` (200 or 503).

It listens on the loopback address alone, and takes nothing but these three questions.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from consilience.engines.peers.status import Status
from consilience.errors import InputError
from consilience.files.strict_json import strict_json

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0  # seconds for a question, and for an answer


class HealthPort:
    """Answers while it is open; `port` 0 takes any that is free, and `port` then says which."""

    def __init__(self, status: Callable[[], Status], port: int = 0) -> None:
        class Answer(BaseHTTPRequestHandler):
            timeout = PATIENCE

            def do_GET(self) -> None:
                code, kind, text = answered(status(), self.path)
                content = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Nothing: who asks every second would fill a disk."""

        try:
            self._server = ThreadingHTTPServer((LOOPBACK, port), Answer)
        except OverflowError:
            raise InputError(f"--health-port: must be at most 65535, got {port}") from None
        except OSError as error:
            raise InputError(
                f"--health-port: {port} cannot be had ({error.strerror}); 0 takes any that is free"
            ) from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no longer."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def answered(status: Status, path: str) -> tuple[int, str, str]:
    """The code, the kind and the text of an answer."""
    if path == "/status":
        return 200, "application/json", strict_json(status.values())
    if path == "/metrics":
        return 200, "text/plain; version=0.0.4", status.metrics()
    if path == "/health":
        told = {
            name: sum(bool(getattr(one, name)) for one in status.neighbours)
            for name in ("reachable", "admitted", "contributing")
        }
        return (
            200 if status.exchanging else 503,
            "application/json",
            strict_json({"exchanging": status.exchanging, **told}),
        )
    return 404, "text/plain", "there are /status, /metrics and /health\n"


def asked(port: int) -> dict[str, Any] | None:
    """What the peer at a port of this host says of itself; nothing where nobody answers as one does."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE)
    try:
        connection.request("GET", "/status")
        told = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return told if isinstance(told, dict) and "neighbours" in told else None
