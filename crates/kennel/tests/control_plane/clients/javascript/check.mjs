// What the programs beside this one share: running their checks, and errors as a user of the client reads them.

import assert from 'node:assert/strict';

// Runs every check, and ends with a failure if one of them failed.
export async function run(checks) {
  let failed = 0;
  for (const check of checks) {
    try {
      await check();
      console.log('ok', check.name);
    } catch (error) {
      failed += 1;
      console.log('FAILED', check.name);
      console.log(error);
    }
  }
  process.exit(failed ? 1 : 0);
}

// The Status of a call that must be refused with this code, reason and (part of a) message.
export async function refused(code, reason, message, call) {
  let answer;
  try {
    answer = await call();
  } catch (error) {
    assert.equal(error.code, code, error.message);
    const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
    assert.deepEqual([status.kind, status.code, status.reason], ['Status', code, reason]);
    assert.ok(status.message.includes(message), status.message);
    return status;
  }
  assert.fail(`it was not refused: ${JSON.stringify(answer)}`);
}

// Far more than anything here takes; a passing check never waits for it.
const PATIENCE_MILLISECONDS = 60_000;

// Waits until a value that changes on its own is there.
export async function until(what, look) {
  const deadline = Date.now() + PATIENCE_MILLISECONDS;
  for (;;) {
    if (await look()) return;
    assert.ok(Date.now() < deadline, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
