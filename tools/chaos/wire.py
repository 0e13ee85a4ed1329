"""A way to a port that can be cut, closed, or made to hang."""

import socket
from contextlib import suppress
from threading import Event, Lock, Thread


class Wire:
    """Listens on a port of 127.0.0.1 and carries what comes to another, and back."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._ends: set[socket.socket] = set()
        self._lock = Lock()
        self._goes = Event()
        self._goes.set()
        self._listen()

    def _listen(self) -> None:
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def hang(self) -> None:
        """Take connections and bytes from now on, and carry none."""
        self._goes.clear()

    def refuse(self) -> None:
        """Take no connection from now on, and end those that are there."""
        # `close` alone does not wake who waits for a connection.
        _end(self._listener)
        self._listener.close()
        self.cut()

    def open(self) -> None:
        """Carry everything again."""
        if self._listener.fileno() == -1:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._listen()
        self._goes.set()

    def cut(self) -> None:
        """End the connections that are there."""
        with self._lock:
            for each in self._ends:
                _end(each)

    def close(self) -> None:
        """Take and carry nothing any more."""
        self.refuse()
        self._goes.set()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        """Carry both ways until an end closes."""
        with near, suppress(OSError):
            self._goes.wait()
            with socket.create_connection(("127.0.0.1", self.target)) as far:
                with self._lock:
                    self._ends |= {near, far}
                try:
                    back = Thread(target=self._carry, args=(far, near), daemon=True)
                    back.start()
                    self._carry(near, far)
                    back.join()
                finally:
                    with self._lock:
                        self._ends -= {near, far}

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._goes.wait()
                target.sendall(data)
        for each in (source, target):
            _end(each)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
