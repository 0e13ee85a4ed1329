"""A process that claims jobs until there are none, and prints which."""

import sys

from verix_anon.service import leases
from verix_anon.service.database import Database

if __name__ == "__main__":
    database = Database(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    while claim := leases.claim(database, sys.argv[2], lease_seconds=60):
        print(claim.job_id, flush=True)
        leases.finish(database, claim, root="ab", delivery=())
