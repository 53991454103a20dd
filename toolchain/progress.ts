export interface Progress {
  update(text: string): void;
  done(text?: string): void;
  fail(text?: string): void;
}

const HEARTBEAT_MS = 15_000;
const REFRESH_MS = 100;

function elapsed(since: number): string {
  const seconds = Math.round((Date.now() - since) / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/**
 * Tells on stderr how a long thing goes: on a terminal one line that is written anew, elsewhere a line at the start,
 * one every 15 s, and one at the end.
 */
export function progress(label: string): Progress {
  const out = process.stderr;
  const start = Date.now();
  let text = "";
  let drawn = 0;
  const state = () => `${label}: ${[text, elapsed(start)].filter((part) => part !== "").join(", ")}`;
  const draw = () => {
    drawn = Date.now();
    out.write(`\r\x1b[K${state().slice(0, (out.columns || 80) - 1)}`);
  };
  const beat = out.isTTY ? draw : () => void out.write(`${state()}\n`);
  const timer = setInterval(beat, out.isTTY ? 1000 : HEARTBEAT_MS);
  timer.unref();
  if (out.isTTY) draw();
  else out.write(`${label} …\n`);
  const end = (word: string) => {
    clearInterval(timer);
    out.write(`${out.isTTY ? "\r\x1b[K" : ""}${label}: ${word} (${elapsed(start)})\n`);
  };
  return {
    update(next) {
      text = next;
      if (out.isTTY && Date.now() - drawn > REFRESH_MS) draw();
    },
    done: (last = "done") => end(last),
    fail: (last = "failed") => end(last),
  };
}

/** Shows how `work` goes, and with which word it ended. */
export async function showing<T>(label: string, work: (told: Progress) => Promise<T>, word?: string): Promise<T> {
  const told = progress(label);
  try {
    const result = await work(told);
    told.done(word);
    return result;
  } catch (error) {
    told.fail();
    throw error;
  }
}
