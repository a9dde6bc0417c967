"""Asks a peer (see peer.py) so many times, each on a connection of its own, and prints how often each answer came."""
import collections, socket, sys

kind, host, port, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
timeout = float(sys.argv[5]) if len(sys.argv) > 5 else 3
answers = collections.Counter()
for _ in range(count):
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    made.settimeout(timeout)
    try:
        made.connect((host, port))
        made.send(b"?")
        answers[made.recv(200).decode().strip()] += 1
    except (ConnectionRefusedError, PermissionError):
        answers["refused"] += 1
    except (TimeoutError, socket.timeout):
        answers["timeout"] += 1
    except OSError as error:
        answers[str(error)] += 1
    made.close()
for answer, times in sorted(answers.items()):
    print(f"{times} {answer}")
