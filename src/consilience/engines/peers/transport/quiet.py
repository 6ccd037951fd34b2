"""gRPC, imported so that it says nothing by itself, and what both sides of a call have in common."""

from __future__ import annotations

import logging
import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when it is imported: it would write to stderr from C
logging.getLogger("grpc").addHandler(logging.NullHandler())

import grpc  # noqa: E402

from consilience.engines.peers.wire import LONGEST_FRAME  # noqa: E402

SERVICE, NAME = "consilience.Peers", "Link"
METHOD = f"/{SERVICE}/{NAME}"
WELCOME = ("consilience", "1")  # what an answer begins with, or ends with: a peer has said it, not gRPC in its place

OPTIONS = (
    ("grpc.max_send_message_length", LONGEST_FRAME),
    ("grpc.max_receive_message_length", LONGEST_FRAME),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

__all__ = ["METHOD", "NAME", "OPTIONS", "SERVICE", "WELCOME", "grpc"]
