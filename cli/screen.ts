import { styleText } from "node:util";

export interface Screen {
  /** A line that stays. */
  print(line: string): void;
  /** What goes on just now; on a terminal it is drawn below the lines and renewed, elsewhere told now and then. */
  live(lines: () => readonly string[]): void;
  end(): void;
}

const REDRAW_MS = 200;
/** Some terminals say they have none. */
const USUAL_COLUMNS = 80;
const HEARTBEAT_MS = 15_000;

type Style = Parameters<typeof styleText>[0];

/** Colour where a person looks at it, and not against NO_COLOR. */
export function paint(style: Style, text: string): string {
  const wanted = process.stdout.isTTY && !process.env["NO_COLOR"];
  return wanted ? styleText(style, text) : text;
}

/** Results go to stdout, what goes on just now to stderr. */
export function screen(): Screen {
  const { stdout, stderr } = process;
  let lines: () => readonly string[] = () => [];
  let drawn = 0;
  let lastWord = Date.now();
  const erase = () => {
    if (drawn > 0) stderr.write(`\x1b[${drawn}A\x1b[J`);
    drawn = 0;
  };
  const draw = () => {
    erase();
    const shown = lines().slice(0, Math.max(1, stderr.rows - 2));
    for (const line of shown) stderr.write(`${line.slice(0, (stderr.columns || USUAL_COLUMNS) - 1)}\n`);
    drawn = shown.length;
  };
  const beat = () => {
    if (Date.now() - lastWord < HEARTBEAT_MS) return;
    lastWord = Date.now();
    for (const line of lines()) stderr.write(`… ${line}\n`);
  };
  const timer = stderr.isTTY ? setInterval(draw, REDRAW_MS) : setInterval(beat, HEARTBEAT_MS / 3);
  timer.unref();
  return {
    print(line) {
      lastWord = Date.now();
      erase();
      stdout.write(`${line}\n`);
    },
    live(now) {
      lines = now;
    },
    end() {
      clearInterval(timer);
      erase();
    },
  };
}
