"""A supervisor in a process of its own, with the settings from stdin: it ends at SIGTERM."""

import os
import signal
import sys

from verix_anon.service import supervisor
from verix_anon.service.settings import ServiceSettings

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    if "VERIX_TEST_ENGINE" in os.environ:
        supervisor.MODULE = "service.odd_worker"
    with supervisor.Supervisor(ServiceSettings.from_json(sys.stdin.readline())):
        signal.sigwait({signal.SIGTERM})
