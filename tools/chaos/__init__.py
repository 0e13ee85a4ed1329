"""A service under faults: servers, workers, disk, database, store and network fail on purpose.

`ground` starts what a provider runs and can break each part of it. `faults` says what is broken,
for how long, and who must notice. `clients` submit all the while and judge what they get.
"""
