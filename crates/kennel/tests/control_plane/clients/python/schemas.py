"""OpenAPI documents as editors use them: the manifests of this repository are valid, and mistakes are found."""

import json
from pathlib import Path

import jsonschema
import yaml
from kubernetes import client, config

from check import run, same

config.load_kube_config()
api = client.ApiClient()
REPOSITORY = Path(__file__).resolve().parents[6]
SCHEMAS = "#/components/schemas/"


def get(path):
    response = api.call_api(path, "GET", auth_settings=["BearerToken"], _preload_content=False)
    return json.loads(response.data)


def strict(schema):
    """Refuses unknown fields, as tools do that turn the documents into schemas for editors."""
    if "properties" in schema:
        schema["additionalProperties"] = False


def validators():
    """A validator for each group, version and kind."""
    found = {}
    for entry in get("/openapi/v3")["paths"].values():
        document = get(entry["serverRelativeURL"])
        definitions = document["components"]["schemas"]
        for definition in definitions.values():
            strict(definition)
        for name, definition in definitions.items():
            for kind in definition.get("x-kubernetes-group-version-kind", []):
                schema = {"$ref": SCHEMAS + name, "components": document["components"]}
                jsonschema.Draft4Validator.check_schema(definition)
                validator = jsonschema.Draft4Validator(schema)
                key = (kind["group"], kind["version"], kind["kind"])
                # Documents repeat kinds of other groups; each is the same.
                found.setdefault(key, validator)
    return found


VALIDATORS = validators()


def mistakes(manifest):
    """Where a manifest is wrong and how, in the words of the validator."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    validator = VALIDATORS[(group, version, manifest["kind"])]
    errors = validator.iter_errors(manifest)
    return sorted("/".join(map(str, error.path)) + ": " + error.message for error in errors)


def manifests():
    """The manifests of the repository, with their files."""
    for directory in ["examples", "deploy/kubernetes"]:
        for file in sorted((REPOSITORY / directory).rglob("*.yaml")):
            for manifest in yaml.safe_load_all(file.read_text()):
                if manifest:
                    yield file, manifest


def the_manifests_of_the_repository_are_valid():
    count = 0
    for file, manifest in manifests():
        group = manifest["apiVersion"].rpartition("/")[0]
        if (group, manifest["apiVersion"].rpartition("/")[2], manifest["kind"]) not in VALIDATORS:
            continue
        same((str(file), mistakes(manifest)), (str(file), []))
        count += 1
    assert count > 20, count


def a_daemon():
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "imagePullPolicy": "Always",
                            "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
                        }
                    ]
                },
            },
        },
    }


def mistakes_are_found():
    same(mistakes(a_daemon()), [])
    wrong = a_daemon()
    spec = wrong["spec"]["template"]["spec"]
    spec["hostNetwerk"] = True
    spec["containers"][0]["imagePullPolicy"] = "Sometimes"
    wrong["spec"]["minReadySeconds"] = "five"
    del wrong["spec"]["selector"]
    found = mistakes(wrong)
    for place, words in [
        ("spec: ", "'selector' is a required property"),
        ("spec/minReadySeconds: ", "'five' is not of type 'integer'"),
        ("spec/template/spec: ", "('hostNetwerk' was unexpected)"),
        ("spec/template/spec/containers/0/imagePullPolicy: ", "'Sometimes' is not one of"),
    ]:
        assert any(one.startswith(place) and words in one for one in found), (place, found)
    same(len(found), 4)


def what_is_required_and_missing_is_found():
    ip_address = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress"}
    same(mistakes(ip_address), [": 'spec' is a required property"])
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [], "ephemeralContainers": [{}]}}
    same(mistakes(pod), ["spec/ephemeralContainers/0: 'name' is a required property"])


run(
    [
        the_manifests_of_the_repository_are_valid,
        mistakes_are_found,
        what_is_required_and_missing_is_found,
    ]
)
