"""Commands in a container and its log with the official Python client. The pod `talker` runs already."""

from check import refused, run, same
from kubernetes import client, config, watch
from kubernetes.stream import stream

config.load_kube_config()
core = client.CoreV1Api()
POD = ("talker", "default")

STEPS = "for i in 1 2 3; do echo step $i; sleep 0.2; done"


def execute(command, **options):
    arguments = {"stdin": False, "stdout": True, "stderr": True, "tty": False, **options}
    command = ["/bin/sh", "-c", command]
    return stream(core.connect_get_namespaced_pod_exec, *POD, command=command, **arguments)


def a_command_shows_its_output_and_errors():
    # Two pipes: nothing orders a line on stderr among those on stdout.
    same(sorted(execute("echo out; echo err >&2").split()), ["err", "out"])
    same(execute("printf '\\377'", binary=True), b"\xff")


def a_command_has_an_exit_code():
    session = execute("exit 3", _preload_content=False)
    session.run_forever(timeout=30)
    same(session.returncode, 3)
    session = execute("true", _preload_content=False)
    session.run_forever(timeout=30)
    same(session.returncode, 0)


def every_message_can_be_polled_for():
    # The client polls the socket for each message, and would wait for one that TLS has read together with another.
    for _ in range(5):
        session = execute("echo out; echo err >&2; exit 3", _preload_content=False)
        while session.is_open():
            session.update(timeout=30)
            hidden = session.sock.sock.pending() if session.is_open() else 0
            same(hidden, 0)
        same(session.returncode, 3)


def a_command_reads_input_until_it_is_closed():
    script = "while read line; do echo heard $line; done; echo end"
    session = execute(script, stdin=True, _preload_content=False)
    same(session.subprotocol, "v5.channel.k8s.io")
    for word in ["one", "two"]:
        session.write_stdin(word + "\n")
        same(session.readline_stdout(timeout=30), "heard " + word)
    session.close_channel(0)
    same(session.readline_stdout(timeout=30), "end")
    session.run_forever(timeout=30)
    same(session.returncode, 0)


def a_terminal_joins_output_and_errors():
    shown = execute("test -t 0 && echo terminal; echo err >&2", tty=True, stdin=True, stderr=False)
    same(shown.split(), ["terminal", "err"])


def log(**options):
    # As bytes: this version of the client turns them into text with their quotes and escapes.
    return core.read_namespaced_pod_log(*POD, _preload_content=False, **options).data.decode()


def logs_are_read_and_followed():
    same(log(), "line 1\nline 2\nline 3\n")
    same(log(tail_lines=1), "line 3\n")
    stamped = log(tail_lines=1, timestamps=True)
    assert stamped.split()[0].endswith("Z"), stamped
    pod = core.read_namespaced_pod(*POD)
    pod.metadata = client.V1ObjectMeta(name="steps")
    pod.spec.restart_policy = "Never"
    pod.spec.containers[0].command = ["/bin/sh", "-c", STEPS]
    pod.status = None
    core.create_namespaced_pod("default", pod)
    steps = ("steps", "default")
    for event in watch.Watch().stream(
        core.list_namespaced_pod, "default", field_selector="metadata.name=steps", timeout_seconds=60
    ):
        if event["object"].status.phase in ("Running", "Succeeded"):
            break
    lines = list(watch.Watch().stream(core.read_namespaced_pod_log, *steps))
    same(lines, ["step 1", "step 2", "step 3"])
    gone = core.delete_namespaced_pod(*steps, grace_period_seconds=0)
    same(gone.metadata.name, "steps")


def errors_are_read():
    refused(404, "NotFound", 'pods "nobody" not found', core.read_namespaced_pod_log, "nobody", "default")
    refused(
        400,
        "BadRequest",
        "container other is not valid for pod talker",
        core.read_namespaced_pod_log,
        *POD,
        container="other",
    )


run(
    [
        a_command_shows_its_output_and_errors,
        a_command_has_an_exit_code,
        every_message_can_be_polled_for,
        a_command_reads_input_until_it_is_closed,
        a_terminal_joins_output_and_errors,
        logs_are_read_and_followed,
        errors_are_read,
    ]
)
