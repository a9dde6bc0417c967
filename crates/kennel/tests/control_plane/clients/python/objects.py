"""Objects, lists, watches, patches and errors with the official Python client."""

import datetime
import tempfile

from check import refused, run, same
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, ResourceNotFoundError

config.load_kube_config()
core = client.CoreV1Api()
apps = client.AppsV1Api()

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


def config_map(name, data=None, labels=None):
    metadata = client.V1ObjectMeta(name=name, labels=labels)
    return client.V1ConfigMap(metadata=metadata, data=data)


def secret(name, labels=None):
    """Of which a new namespace has none."""
    return client.V1Secret(metadata=client.V1ObjectMeta(name=name, labels=labels))


def daemon_set(name, image="example.com/agent:1"):
    labels = {"app": name}
    containers = [
        client.V1Container(name="main", image=image),
        client.V1Container(name="sidecar", image="example.com/sidecar:1"),
    ]
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=containers)
    )
    selector = client.V1LabelSelector(match_labels=labels)
    return client.V1DaemonSet(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1DaemonSetSpec(selector=selector, template=template),
    )


def namespace(name):
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    return name


def the_version_and_the_groups_are_found():
    assert client.VersionApi().get_code().git_version.startswith("v1.36.")
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    assert {"apps", "policy", "rbac.authorization.k8s.io"} <= groups, groups
    kinds = {resource.kind for resource in core.get_api_resources().resources}
    assert {"ConfigMap", "Pod", "Service"} <= kinds, kinds


def an_object_is_created_read_replaced_and_deleted():
    made = core.create_namespaced_config_map("default", config_map("a", {"k": "1"}))
    assert isinstance(made.metadata.creation_timestamp, datetime.datetime)
    same(made.metadata.managed_fields[0].manager, "OpenAPI-Generator")
    read = core.read_namespaced_config_map("a", "default")
    same(read, made)
    # Whole, with its times and managed fields, as the client writes them.
    read.data = {"k": "2"}
    replaced = core.replace_namespaced_config_map("a", "default", read)
    same(replaced.data, {"k": "2"})
    same(replaced.metadata.creation_timestamp, made.metadata.creation_timestamp)
    refused(
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "a": the object has been modified;'
        " please apply your changes to the latest version and try again",
        core.replace_namespaced_config_map,
        "a",
        "default",
        made,
    )
    gone = core.delete_namespaced_config_map("a", "default")
    same((gone.status, gone.details.name, gone.details.uid), ("Success", "a", made.metadata.uid))


def errors_are_read():
    refused(
        404, "NotFound", 'configmaps "no" not found', core.read_namespaced_config_map, "no", "default"
    )
    core.create_namespaced_config_map("default", config_map("twice"))
    refused(
        409,
        "AlreadyExists",
        'configmaps "twice" already exists',
        core.create_namespaced_config_map,
        "default",
        config_map("twice"),
    )
    body = refused(
        422,
        "Invalid",
        'ConfigMap "Not A Name" is invalid: metadata.name: Invalid value: "Not A Name"',
        core.create_namespaced_config_map,
        "default",
        config_map("Not A Name"),
    )
    same([cause["field"] for cause in body["details"]["causes"]], ["metadata.name"])
    refused(
        400,
        "BadRequest",
        "found '=', expected: ',' or 'end of string'",
        core.list_namespaced_config_map,
        "default",
        label_selector="a=b=c",
    )
    refused(
        422,
        "Invalid",
        "spec.template.metadata.labels: Invalid value",
        apps.create_namespaced_daemon_set,
        "default",
        {
            "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"app": "d"}},
                "template": {
                    "metadata": {"labels": {"app": "e"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        },
    )


def lists_come_in_pages():
    pages = namespace("pages")
    for number in range(5):
        core.create_namespaced_secret(pages, secret(f"m{number}", {"odd": str(number % 2)}))
    names, token, rest = [], None, []
    while True:
        page = core.list_namespaced_secret(pages, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        rest.append(page.metadata.remaining_item_count)
        token = page.metadata._continue
        if not token:
            break
    same(names, ["m0", "m1", "m2", "m3", "m4"])
    same(rest, [3, 1, None])
    odd = core.list_namespaced_secret(pages, label_selector="odd=1")
    same([item.metadata.name for item in odd.items], ["m1", "m3"])
    one = core.list_namespaced_secret(pages, field_selector="metadata.name=m4")
    same(len(one.items), 1)
    refused(
        400,
        "BadRequest",
        "continue key is not valid",
        core.list_namespaced_secret,
        pages,
        limit=2,
        _continue="nonsense",
    )


def events(watcher, *arguments, **options):
    """What a watch of Secrets brings until its timeout."""
    options.setdefault("timeout_seconds", 1)
    found = []
    for event in watcher.stream(core.list_namespaced_secret, *arguments, **options):
        metadata = event["raw_object"]["metadata"]
        found.append((event["type"], metadata.get("name")))
    return found


def watches_resume_and_end():
    watched = namespace("watched")
    start = core.list_namespaced_secret(watched).metadata.resource_version
    core.create_namespaced_secret(watched, secret("a"))
    core.patch_namespaced_secret("a", watched, {"stringData": {"k": "1"}})
    core.delete_namespaced_secret("a", watched)
    changes = [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    watcher = watch.Watch()
    same(events(watcher, watched, resource_version=start), changes)

    # From where another watch stopped.
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_secret, watched, resource_version=start):
        same((event["type"], event["object"].metadata.name), changes[0])
        watcher.stop()
    resumed = watcher.resource_version
    same(events(watch.Watch(), watched, resource_version=resumed), changes[1:])

    # A bookmark comes before the end, so that the next watch starts there.
    core.create_namespaced_secret("default", secret("elsewhere"))
    watcher = watch.Watch()
    marked = events(watcher, watched, resource_version=start, allow_watch_bookmarks=True)
    same(marked, changes + [("BOOKMARK", None)])
    assert int(watcher.resource_version) > int(resumed)
    same(events(watch.Watch(), watched, resource_version=watcher.resource_version), [])


def a_watch_streams_its_list():
    streamed = namespace("streamed")
    core.create_namespaced_secret(streamed, secret("a"))
    found = events(
        watch.Watch(),
        streamed,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
        allow_watch_bookmarks=True,
    )
    same(found[:2], [("ADDED", "a"), ("BOOKMARK", None)])


def patches_merge_as_their_media_type_says():
    apps.create_namespaced_daemon_set("default", daemon_set("patched"))
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "x:2"}]}}}}
    # A strategic merge patch, which is what the client sends for an object.
    patched = apps.patch_namespaced_daemon_set("patched", "default", change)
    images = {c.name: c.image for c in patched.spec.template.spec.containers}
    same(images, {"main": "x:2", "sidecar": "example.com/sidecar:1"})
    # A JSON patch, which is what it sends for a list.
    change = [{"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "y:2"}]
    patched = apps.patch_namespaced_daemon_set("patched", "default", change)
    same(patched.spec.template.spec.containers[1].image, "y:2")
    change = {"spec": {"template": {"spec": {"containers": [{"name": "one", "image": "z:3"}]}}}}
    patched = apps.patch_namespaced_daemon_set("patched", "default", change, _content_type=MERGE)
    same([c.name for c in patched.spec.template.spec.containers], ["one"])
    status = {"status": {"numberReady": 3}}
    patched = apps.patch_namespaced_daemon_set_status("patched", "default", status)
    same(patched.status.number_ready, 3)


def applied(value, **options):
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "applied"},
        "data": {"k": value},
    }
    return core.patch_namespaced_config_map(
        "applied", "default", body, _content_type=APPLY, **options
    )


def server_side_apply_creates_shares_and_conflicts():
    made = applied("1", field_manager="one")
    manager = made.metadata.managed_fields[0]
    same((manager.manager, manager.operation), ("one", "Apply"))
    same(manager.fields_v1, {"f:data": {"f:k": {}}})
    same(applied("1", field_manager="one").metadata.resource_version, made.metadata.resource_version)
    shared = applied("1", field_manager="two")
    same({m.manager for m in shared.metadata.managed_fields}, {"one", "two"})
    body = refused(
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "two": .data.k',
        applied,
        "2",
        field_manager="one",
    )
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "two"', "field": ".data.k"}
    same(body["details"]["causes"], [cause])
    same(applied("3", field_manager="one", force=True).data, {"k": "3"})
    refused(422, "Invalid", "fieldManager: Required value: is required for apply patch", applied, "1")


def the_dynamic_client_works_by_kind():
    with tempfile.NamedTemporaryFile(suffix=".json") as cache:
        found = dynamic.DynamicClient(client.ApiClient(), cache_file=cache.name + ".new")
    sets = found.resources.get(api_version="apps/v1", kind="DaemonSet")
    body = client.ApiClient().sanitize_for_serialization(daemon_set("dynamic"))
    body.update(apiVersion="apps/v1", kind="DaemonSet")
    made = sets.create(body=body, namespace="default")
    same(made.metadata.name, "dynamic")
    body["spec"]["minReadySeconds"] = 5
    changed = sets.server_side_apply(
        body=body, namespace="default", field_manager="dynamic", force_conflicts=True
    )
    same(changed.spec.minReadySeconds, 5)
    try:
        body["spec"]["minReadySeconds"] = 6
        sets.server_side_apply(body=body, namespace="default", field_manager="another")
        raise AssertionError("it was not refused")
    except ConflictError as error:
        assert ".spec.minReadySeconds" in error.summary(), error.summary()
    seen = [
        (event["type"], event["object"].metadata.name)
        for event in sets.watch(namespace="default", name="dynamic", timeout=1)
    ]
    same(seen, [("ADDED", "dynamic")])
    same(sets.delete(name="dynamic", namespace="default").status, "Success")
    try:
        sets.get(name="dynamic", namespace="default")
        raise AssertionError("it was found")
    except NotFoundError as error:
        same(error.status, 404)
    try:
        found.resources.get(api_version="apps/v1", kind="Deployment")
        raise AssertionError("it was found")
    except ResourceNotFoundError:
        pass


def deletions_take_options():
    made = core.create_namespaced_config_map("default", config_map("options", labels={"set": "1"}))
    core.delete_namespaced_config_map("options", "default", dry_run="All")
    other = client.V1Preconditions(uid="00000000-0000-0000-0000-000000000000")
    refused(
        409,
        "Conflict",
        "Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000",
        core.delete_namespaced_config_map,
        "options",
        "default",
        body=client.V1DeleteOptions(preconditions=other),
    )
    own = client.V1Preconditions(uid=made.metadata.uid)
    core.delete_namespaced_config_map(
        "options",
        "default",
        body=client.V1DeleteOptions(preconditions=own, propagation_policy="Background"),
    )
    for name in ["b", "c"]:
        core.create_namespaced_config_map("default", config_map(name, labels={"set": "1"}))
    core.delete_collection_namespaced_config_map("default", label_selector="set=1")
    same(core.list_namespaced_config_map("default", label_selector="set=1").items, [])
    apps.create_namespaced_daemon_set("default", daemon_set("foreground"))
    apps.delete_namespaced_daemon_set(
        "foreground", "default", propagation_policy="Foreground", grace_period_seconds=0
    )
    finalizers = apps.read_namespaced_daemon_set("foreground", "default").metadata.finalizers
    same(finalizers, ["foregroundDeletion"])


def times_with_fractions_are_kept():
    leases = client.CoordinationV1Api()
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time=now)
    body = client.V1Lease(metadata=client.V1ObjectMeta(name="lease"), spec=spec)
    leases.create_namespaced_lease("default", body)
    lease = leases.read_namespaced_lease("lease", "default")
    same(lease.spec.renew_time, now)
    leases.replace_namespaced_lease("lease", "default", lease)


def a_token_authenticates_and_is_authorised():
    account = client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot"))
    core.create_namespaced_service_account("default", account)
    request = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600)
    )
    token = core.create_namespaced_service_account_token("robot", "default", request).status.token
    admin = client.Configuration.get_default_copy()
    settings = client.Configuration(host=admin.host)
    settings.ssl_ca_cert = admin.ssl_ca_cert
    settings.api_key = {"authorization": f"Bearer {token}"}
    robot = client.CoreV1Api(client.ApiClient(settings))
    refused(
        403,
        "Forbidden",
        'secrets is forbidden: User "system:serviceaccount:default:robot" cannot list resource'
        ' "secrets" in API group "" in the namespace "default"',
        robot.list_namespaced_secret,
        "default",
    )
    settings.api_key = {"authorization": "Bearer nonsense"}
    refused(401, "Unauthorized", "Unauthorized", robot.list_namespaced_secret, "default")


MANIFESTS = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-yaml"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "from-yaml"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
]


def manifests_are_created():
    utils.create_from_yaml(client.ApiClient(), yaml_objects=MANIFESTS)
    same(core.read_namespaced_config_map("from-yaml", "default").metadata.name, "from-yaml")
    role = client.RbacAuthorizationV1Api().read_namespaced_role("from-yaml", "default")
    same(role.rules[0].verbs, ["get"])
    try:
        utils.create_from_yaml(client.ApiClient(), yaml_objects=MANIFESTS)
        raise AssertionError("it was not refused")
    except utils.FailToCreateError as error:
        same([failure.status for failure in error.api_exceptions], [409, 409])


run(
    [
        the_version_and_the_groups_are_found,
        an_object_is_created_read_replaced_and_deleted,
        errors_are_read,
        lists_come_in_pages,
        watches_resume_and_end,
        a_watch_streams_its_list,
        patches_merge_as_their_media_type_says,
        server_side_apply_creates_shares_and_conflicts,
        the_dynamic_client_works_by_kind,
        deletions_take_options,
        times_with_fractions_are_kept,
        a_token_authenticates_and_is_authorised,
        manifests_are_created,
    ]
)
