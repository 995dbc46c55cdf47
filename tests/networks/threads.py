"""Ranks as threads of this process: what ``transports`` asks of MPI, without MPI."""

import pickle
import threading
from queue import Empty, Queue

import numpy as np

WAIT = 20  # seconds, until a rank is given up that another has left alone


class Sending:
    def __init__(self, queue, buffer, sends):
        self.queue, self.buffer, self.sends = queue, buffer, sends

    def Start(self):
        if self.sends:
            self.queue.put(self.buffer.copy())

    def Wait(self):
        if not self.sends:
            np.copyto(self.buffer, self.queue.get(timeout=WAIT))

    def Free(self):
        pass


class Comm:
    """One rank's communicator; all of them share queues, by sender, receiver and tag."""

    def __init__(self, rank, size, queues):
        self.rank, self.size, self._all = rank, size, queues

    def _queue(self, *key):
        return self._all.setdefault(key, Queue())  # at once, whichever thread comes first

    def send(self, value, dest, tag):
        self._queue(self.rank, dest, tag).put(pickle.dumps(value))

    def recv(self, buffer, source, tag):
        return pickle.loads(self._queue(source, self.rank, tag).get(timeout=WAIT))

    def alltoall(self, values):
        for dest, value in enumerate(values):
            self.send(value, dest, "alltoall")
        return [self.recv(None, source, "alltoall") for source in range(self.size)]

    def allgather(self, value):
        return self.alltoall([value] * self.size)

    def gather(self, value):
        self.send(value, 0, "gather")
        if not self.rank:
            return [self.recv(None, source, "gather") for source in range(self.size)]
        return None

    def Send_init(self, buffer, dest, tag):
        return Sending(self._queue(self.rank, dest, tag, "numbers"), buffer, True)

    def Recv_init(self, buffer, source, tag):
        return Sending(self._queue(source, self.rank, tag, "numbers"), buffer, False)


def over_ranks(size, function):
    """Return what the function returns of each rank's communicator, or raises there."""
    queues, found = {}, [None] * size

    def run(rank):
        try:
            found[rank] = function(Comm(rank, size, queues))
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [error for error in found if isinstance(error, Exception)]
    for error in sorted(errors, key=lambda error: isinstance(error, Empty)):  # of who waited, last
        raise error
    return found
