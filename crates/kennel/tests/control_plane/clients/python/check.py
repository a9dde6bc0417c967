"""What the programs beside this one share: running their checks, and errors as a user of the client reads them."""

import json
import sys
import traceback

from kubernetes.client.exceptions import ApiException


def run(checks):
    """Runs every check, and ends with a failure if one of them failed."""
    failed = 0
    for check in checks:
        try:
            check()
            print("ok", check.__name__)
        except BaseException:
            failed += 1
            print("FAILED", check.__name__)
            traceback.print_exc(file=sys.stdout)
    sys.exit(1 if failed else 0)


def refused(status, reason, message, call, *arguments, **options):
    """The Status of a call that must be refused with this code, reason and (part of a) message."""
    try:
        answer = call(*arguments, **options)
    except ApiException as error:
        body = json.loads(error.body)
        found = (error.status, body["kind"], body["code"], body["reason"])
        assert found == (status, "Status", status, reason), body
        assert message in body["message"], body["message"]
        return body
    raise AssertionError(f"it was not refused: {answer}")


def same(found, expected):
    """Two values that must be equal."""
    assert found == expected, f"{found!r} instead of {expected!r}"
