# What py-spy is asked for: threads.py THREADS DEPTH. Prints a line when they all wait.
import sys
import threading

threads, depth = int(sys.argv[1]), int(sys.argv[2])
over = threading.Event()


def descend(left):
    return over.wait() if left == 0 else descend(left - 1)


for _ in range(threads):
    threading.Thread(target=descend, args=(depth - 1,), daemon=True).start()
print("", flush=True)
sys.stdin.read()
