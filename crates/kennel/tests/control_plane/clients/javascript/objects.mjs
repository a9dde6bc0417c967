// Objects, lists, watches, informers, patches and errors with the official JavaScript client.

import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';
import { refused, run, until } from './check.mjs';

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);

const configMap = (name, data, labels) => ({ metadata: { name, labels }, data });
// Of which a new namespace has none.
const secret = (name) => ({ metadata: { name } });
const names = (list) => list.items.map((item) => item.metadata.name);

async function namespace(name) {
  await core.createNamespace({ body: { metadata: { name } } });
  return name;
}

async function theServerIsHealthyAndSaysItsVersion() {
  assert.equal(await new k8s.Health(config).readyz({}), true);
  const version = await config.makeApiClient(k8s.VersionApi).getCode();
  assert.match(version.gitVersion, /^v1\.36\./);
}

async function anObjectIsCreatedReadReplacedAndDeleted() {
  const place = { name: 'a', namespace: 'default' };
  const made = await core.createNamespacedConfigMap({
    namespace: 'default',
    body: configMap('a', { k: '1' }),
  });
  assert.ok(made.metadata.creationTimestamp instanceof Date);
  const read = await core.readNamespacedConfigMap(place);
  assert.deepEqual(read, made);
  // Whole, with its times and managed fields, as the client writes them.
  read.data.k = '2';
  const replaced = await core.replaceNamespacedConfigMap({ ...place, body: read });
  assert.equal(replaced.data.k, '2');
  assert.deepEqual(replaced.metadata.creationTimestamp, made.metadata.creationTimestamp);
  await refused(409, 'Conflict', 'the object has been modified', () =>
    core.replaceNamespacedConfigMap({ ...place, body: made }),
  );
  const gone = await core.deleteNamespacedConfigMap(place);
  assert.deepEqual([gone.status, gone.details.name], ['Success', 'a']);
}

async function errorsAreRead() {
  await refused(404, 'NotFound', 'configmaps "no" not found', () =>
    core.readNamespacedConfigMap({ name: 'no', namespace: 'default' }),
  );
  const twice = { namespace: 'default', body: configMap('twice') };
  await core.createNamespacedConfigMap(twice);
  await refused(409, 'AlreadyExists', 'configmaps "twice" already exists', () =>
    core.createNamespacedConfigMap(twice),
  );
  const status = await refused(422, 'Invalid', 'metadata.name: Invalid value: "Not A Name"', () =>
    core.createNamespacedConfigMap({ namespace: 'default', body: configMap('Not A Name') }),
  );
  assert.deepEqual(
    status.details.causes.map((cause) => cause.field),
    ['metadata.name'],
  );
}

async function listsComeInPages() {
  const pages = await namespace('pages');
  for (let number = 0; number < 5; number += 1) {
    await core.createNamespacedSecret({ namespace: pages, body: secret(`m${number}`) });
  }
  const found = [];
  let token;
  do {
    const page = await core.listNamespacedSecret({
      namespace: pages,
      limit: 2,
      _continue: token,
    });
    found.push(...names(page));
    token = page.metadata._continue;
  } while (token);
  assert.deepEqual(found, ['m0', 'm1', 'm2', 'm3', 'm4']);
}

async function watchesResumeAndEnd() {
  const watched = await namespace('watched');
  const path = `/api/v1/namespaces/${watched}/secrets`;
  const list = await core.listNamespacedSecret({ namespace: watched });
  const place = { name: 'a', namespace: watched };
  await core.createNamespacedSecret({ namespace: watched, body: secret('a') });
  await core.patchNamespacedSecret(
    { ...place, body: { stringData: { k: '1' } } },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
  );
  await core.deleteNamespacedSecret(place);
  const events = (resourceVersion) =>
    new Promise((resolve, reject) => {
      const found = [];
      const query = { resourceVersion, allowWatchBookmarks: true, timeoutSeconds: 1 };
      const take = (type, object) => found.push([type, object.metadata.resourceVersion]);
      new k8s.Watch(config).watch(path, query, take, (error) =>
        error && error.name !== 'AbortError' ? reject(error) : resolve(found),
      );
    });
  const all = await events(list.metadata.resourceVersion);
  const types = all.map(([type]) => type);
  assert.deepEqual(types, ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);
  const rest = (await events(all[0][1])).map(([type]) => type);
  assert.deepEqual(rest, ['MODIFIED', 'DELETED', 'BOOKMARK']);
}

async function anInformerFollowsChanges() {
  const informed = await namespace('informed');
  const place = { name: 'late', namespace: informed };
  await core.createNamespacedSecret({ namespace: informed, body: secret('early') });
  const informer = k8s.makeInformer(config, `/api/v1/namespaces/${informed}/secrets`, () =>
    core.listNamespacedSecret({ namespace: informed }),
  );
  const seen = [];
  for (const change of ['add', 'update', 'delete']) {
    informer.on(change, (object) => seen.push(`${change} ${object.metadata.name}`));
  }
  await informer.start();
  assert.deepEqual(seen, ['add early']);
  await core.createNamespacedSecret({ namespace: informed, body: secret('late') });
  await until('the addition', () => seen.length === 2);
  const change = { ...place, body: { stringData: { k: '1' } } };
  await core.patchNamespacedSecret(
    change,
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.StrategicMergePatch),
  );
  await until('the update', () => seen.length === 3);
  assert.equal(informer.get('late', informed).data.k, 'MQ==');
  await core.deleteNamespacedSecret(place);
  await until('the deletion', () => seen.length === 4);
  assert.deepEqual(seen.slice(1), ['add late', 'update late', 'delete late']);
  await informer.stop();
}

const applied = (value, fieldManager, force) =>
  core.patchNamespacedConfigMap(
    {
      name: 'applied',
      namespace: 'default',
      body: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'applied' },
        data: { k: value },
      },
      fieldManager,
      force,
    },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.ServerSideApply),
  );

async function serverSideApplyCreatesSharesAndConflicts() {
  const made = await applied('1', 'one');
  const [manager] = made.metadata.managedFields;
  assert.deepEqual([manager.manager, manager.operation], ['one', 'Apply']);
  assert.deepEqual(manager.fieldsV1, { 'f:data': { 'f:k': {} } });
  const conflict = 'Apply failed with 1 conflict: conflict with "one": .data.k';
  const status = await refused(409, 'Conflict', conflict, () => applied('2', 'two'));
  assert.equal(status.details.causes[0].reason, 'FieldManagerConflict');
  const forced = await applied('2', 'two', true);
  assert.equal(forced.data.k, '2');
  await refused(422, 'Invalid', 'fieldManager: Required value', () => applied('1'));
}

const MANIFESTS = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: from-yaml}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: from-yaml}
spec:
  selector: {matchLabels: {app: from-yaml}}
  template:
    metadata: {labels: {app: from-yaml}}
    spec:
      containers:
      - {name: main, image: "example.com/agent:1"}
`;

async function manifestsAreAppliedByKind() {
  const found = k8s.loadAllYaml(MANIFESTS);
  for (const manifest of found) {
    await objects.patch(
      manifest,
      undefined,
      undefined,
      'js',
      true,
      k8s.PatchStrategy.ServerSideApply,
    );
  }
  const [, set] = found;
  const read = await objects.read({ ...set, metadata: { ...set.metadata, namespace: 'default' } });
  assert.equal(read.spec.template.spec.containers[0].image, 'example.com/agent:1');
  assert.equal(read.metadata.managedFields[0].manager, 'js');
  const list = await apps.listNamespacedDaemonSet({ namespace: 'default' });
  assert.deepEqual(names(list), ['from-yaml']);
  await objects.delete(set, undefined, undefined, 0, undefined, 'Background');
  await refused(404, 'NotFound', 'daemonsets.apps "from-yaml" not found', () => objects.read(set));
}

await run([
  theServerIsHealthyAndSaysItsVersion,
  anObjectIsCreatedReadReplacedAndDeleted,
  errorsAreRead,
  listsComeInPages,
  watchesResumeAndEnd,
  anInformerFollowsChanges,
  serverSideApplyCreatesSharesAndConflicts,
  manifestsAreAppliedByKind,
]);
