import assert from "node:assert/strict";
import { RemoteError, type RemoteReason } from "../../provider/errors";

/** The error that work ends with, which must be a host's and for this reason. */
export async function refusal(work: Promise<unknown>, reason: RemoteReason): Promise<RemoteError> {
  const error: unknown = await work.then(
    (result) => assert.fail(`it succeeded: ${JSON.stringify(result)}`),
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof RemoteError, String(error));
  assert.equal(error.failure.reason, reason, error.message);
  return error;
}
