import type { Command } from "../shell";

export interface RunOptions {
  /** Seconds the command may take on the host before it is killed there. */
  timeout?: number;
  /** Become root first (default). */
  root?: boolean;
  /** Exit codes that are good results; default only 0. */
  ok?: readonly number[];
  /** Called for each complete line of stdout as it arrives. */
  onLine?: (line: string) => void;
  signal?: AbortSignal;
  /** What an error names instead of the script's first line. */
  title?: string;
}

export interface RunResult {
  code: number;
  stdout: string;
  stderr: string;
  ms: number;
}

export interface Upload {
  /** Where the checked content ends up; a folder that is missing is made, for root only. Written beside, checked, then renamed. */
  to: string;
  /**
   * A path beside its final place. Where that is another file system than that of `to`, the content waits there and `to` is a link
   * to it, so that it need not be written twice, nor be run where programs may not.
   */
  waitsAt?: string;
  /** Of the file here, and its length. */
  path: string;
  bytes: number;
  sha256: string;
  timeout?: number;
  signal?: AbortSignal;
}

/** A host one can run shell text on: the only thing the engine knows of SSH. */
export interface Remote {
  readonly name: string;
  /** Runs the script with `/bin/sh`, the text on stdin; stdin of the script's own commands is empty. */
  run(script: Command, options?: RunOptions): Promise<RunResult>;
  /** Root-owned, mode 0600, sha256 checked on the host; not synced, as whoever gives it its final place does that. */
  upload(upload: Upload): Promise<void>;
}
