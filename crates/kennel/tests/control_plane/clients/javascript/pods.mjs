// Commands in a container and its log with the official JavaScript client. The pod `talker` runs already.

import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import * as k8s from '@kubernetes/client-node';
import { refused, run } from './check.mjs';

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);

// What a command shows, and the Status that it ends with.
async function execute(command, input) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const shown = [text(stdout), text(stderr)];
  const stdin = input === undefined ? null : Readable.from([input]);
  const status = await new Promise((resolve, reject) => {
    const words = ['/bin/sh', '-c', command];
    const exec = new k8s.Exec(config);
    exec
      .exec('default', 'talker', 'main', words, stdout, stderr, stdin, false, resolve)
      .catch(reject);
  });
  return { stdout: await shown[0], stderr: await shown[1], status };
}

async function aCommandShowsItsOutputAndErrors() {
  const { stdout, stderr, status } = await execute('echo out; echo err >&2');
  assert.deepEqual([stdout, stderr, status.status], ['out\n', 'err\n', 'Success']);
}

async function aCommandHasAnExitCode() {
  const { status } = await execute('exit 3');
  assert.deepEqual([status.status, status.reason], ['Failure', 'NonZeroExitCode']);
  assert.deepEqual(status.details.causes, [{ reason: 'ExitCode', message: '3' }]);
}

async function aCommandReadsItsInputToTheEnd() {
  const { stdout, status } = await execute('cat; echo end', 'hello\n');
  assert.deepEqual([stdout, status.status], ['hello\nend\n', 'Success']);
}

const log = (container, options) => {
  const stream = new PassThrough();
  const read = new k8s.Log(config).log('default', 'talker', container, stream, options);
  return read.then((controller) => ({ controller, stream }));
};

async function logsAreReadAndFollowed() {
  const { stream } = await log('main', { tailLines: 2 });
  assert.equal(await text(stream), 'line 2\nline 3\n');
  const all = await core.readNamespacedPodLog({ name: 'talker', namespace: 'default' });
  assert.equal(all, 'line 1\nline 2\nline 3\n');
  const following = await log('main', { follow: true });
  let shown = '';
  for await (const chunk of following.stream) {
    shown += chunk;
    if (shown.includes('line 3\n')) break;
  }
  assert.equal(shown, all);
  following.controller.abort();
}

async function errorsAreRead() {
  await refused(404, 'NotFound', 'pods "nobody" not found', () =>
    core.readNamespacedPodLog({ name: 'nobody', namespace: 'default' }),
  );
  await assert.rejects(log('other', {}), (error) => error.code === 400);
}

await run([
  aCommandShowsItsOutputAndErrors,
  aCommandHasAnExitCode,
  aCommandReadsItsInputToTheEnd,
  logsAreReadAndFollowed,
  errorsAreRead,
]);
