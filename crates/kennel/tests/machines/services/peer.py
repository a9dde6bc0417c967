"""What runs in a pod: answers each connection and datagram with its name and the address that it sees; a connection is then
echoed."""
import socket, sys, threading

name, port = sys.argv[1], int(sys.argv[2])


def answer(address):
    return f"{name} {address[0]}\n".encode()


def echo(connection, address):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(answer(address) if data == b"?" else data)


def datagrams():
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("0.0.0.0", port))
    while True:
        _, address = made.recvfrom(65536)
        made.sendto(answer(address), address)


threading.Thread(target=datagrams, daemon=True).start()
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("0.0.0.0", port))
listener.listen(512)
while True:
    connection, address = listener.accept()
    threading.Thread(target=echo, args=(connection, address), daemon=True).start()
