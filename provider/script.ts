import { randomBytes } from "node:crypto";
import { bulks } from "./bulk";
import { lib, libFor, libMark, libPath } from "./lib";
import { Command, lines, literal, quote, sh, word, type Secret } from "./shell";
import { follows, keyOf, quick, type BulkKind, type Step } from "./step";

/** Marks our lines in the output, so that nothing a command prints can be taken for one. */
export const newMark = (): string => `@${randomBytes(6).toString("hex")}`;

/** What a component wants on a host: its name in the ledger and its steps in order. */
export interface Work {
  readonly owner: string;
  readonly steps: readonly Step[];
  readonly verify?: Verify;
}

/** What must be true after the change; tried every second until it holds or the time is over, at least once. */
export interface Verify {
  readonly title: string;
  readonly test: Command;
  readonly seconds: number;
}

const marking = sh`m() { case $1 in fail) full_disk $K ;; esac; printf '%s %s\n' "$M" "$*"; }`;

const head = (mark: string, script: Command) => sh`${libFor(lines(marking, script))}
M=${mark}; export M
${marking}`;

const lookFunction = (name: Command, step: Step) => sh`look_${name}() { entry=$L/${keyOf(step.id)}
${step.look}
}`;

const heldPiece = ({ id, brought }: Step, tell: Command) =>
  brought
    ? sh`entry=$L/${keyOf(id)}; if [ ! -d "$entry" ] && ${brought}; then ${tell} others; else ${tell}; fi`
    : sh`entry=$L/${keyOf(id)}; ${tell}`;

/** One script that looks at everything the works want, at what their owners hold in the ledger, and at what it runs on. */
export function lookScript(mark: string, works: readonly Work[]): Command {
  const parts = works.map((work, w) => {
    const looks = work.steps.map((step, s) => {
      const name = word(`${w}_${s}`);
      const held = heldPiece(step, sh`tell_held ${work.owner} ${w} ${s}`);
      return step.bulk
        ? sh`${held}; applied_for`
        : sh`${lookFunction(name, step)}
${held}; look_${name} || m error ${w} ${s} $?`;
    });
    return lines(sh`tell_owned ${work.owner} ${w}`, ...looks);
  });
  const together = bulkNames(works).map(
    ([kind, names, others]) => sh`m bulk ${kind}; ${bulks[kind].ask(names, others)} || m error-bulk ${kind}`,
  );
  // What is known of units beforehand, other looks need not ask systemd for.
  const script = lines(sh`tell_release`, ...together, ...parts);
  return lines(head(mark, script), script, sh`m end`);
}

/** The names to ask for together, each once, by kind; and those that other looks only go by. */
export function bulkNames(works: readonly Work[]): [kind: BulkKind, names: string[], others: string[]][] {
  const steps = works.flatMap((work) => work.steps);
  const wanted = steps.flatMap((step) => step.bulk ?? []);
  const units = [...new Set(steps.flatMap((step) => step.units ?? []))];
  return (Object.keys(bulks) as BulkKind[]).flatMap((kind) => {
    const names = [...new Set(wanted.flatMap((bulk) => (bulk.kind === kind ? [bulk.name] : [])))];
    const others = kind === "unit" ? units.filter((name) => !names.includes(name)) : [];
    return names.length + others.length > 0 ? [[kind, names, others]] : [];
  });
}

/** Text that the remote shell stores or feeds to a child without looking into it. */
function heredoc(command: Command, body: Command): Command {
  const stop = word(`KX${randomBytes(8).toString("hex")}`);
  return sh`${command} <<'${stop}'
${body}
${stop}`;
}

const nothing = sh``;

/** A word that the shell hands on as it is. */
const quoted = (command: Command) => new Command(quote(command.text), quote(String(command)), command.secrets);

const UNDO_SECONDS = 600;

function undoText(step: Step): Command {
  const kept = step.keepIfChanged ?? [];
  const guard =
    kept.length === 0
      ? nothing
      : sh`if changed_since ${kept}; then note ${`kept ${step.id}: somebody changed it since`}; ${step.onKept ?? nothing} exit 0; fi`;
  return sh`# seconds ${Math.max(UNDO_SECONDS, step.timeout ?? 0)}
entry=$1; . ${libPath}
look() { :
${step.look}
}
${guard}
set -e
${step.undo}`;
}

/** How the host is locked while it is changed. */
export interface Holder {
  /** Who changes it: the same owner waits for its own earlier run, others are told at once. */
  readonly id: string;
  /** The process that changes it. */
  readonly run: string;
  readonly component: string;
  /** Seconds to wait for an earlier run of the same owner. */
  readonly patience: number;
  /** All that is of this id goes in this run: what its components share need not be told of. */
  readonly ending?: boolean;
}

/** The exit code of a script that had to wait for another: what was looked at before may be otherwise now. */
export const lookAgain = 76;

/**
 * A killed run of the same stack may still be at work on the host, and only what it leaves counts. Our own run is not
 * waited for, as it looks at one component while it makes another.
 */
export const waitForEarlier = ({ id, run }: Pick<Holder, "id" | "run">) => sh`
if [ -s /run/kubexm.lock ] && read -r holder about </run/kubexm.lock && [ "$holder" = ${id} ]; then
case $about in "("${run}","*) ;; *) flock -s -w 240 /run/kubexm.lock true || { echo "an earlier run is still at work: $about" >&2; exit 75; } ;; esac
fi`;

/** Those who look then need not find out whether he who held it is still at work. */
const letGo = sh`: >/run/kubexm.lock`;

/** A script that changes the host: under the lock, with the library there for what runs in a shell of its own. */
function changing(mark: string, holder: Holder, first: Command, ...body: readonly Command[]): Command {
  // The folder after the lock: who held it may have been the last to leave, and have taken the folder away.
  const lock = sh`take_lock ${holder.id} ${`(${holder.run}, ${holder.component})`} ${holder.patience} || exit $?
[ -d $L ] || mkdir -p $L || exit 1
umask 022`;
  const keepLibrary = sh`have=$({ lib_end=; . ${libPath}; printf %s "$lib_end"; } 2>/dev/null)
if [ "$have" != ${libMark} ]; then
printf '%s\n' ${quoted(lib)} >$K/lib.new && mv -f $K/lib.new ${libPath} || { full_disk $K; exit 1; }
fi`;
  return lines(head(mark, lines(lock, ...body)), first, lock, keepLibrary, ...body);
}

const undoOwned = (
  owner: string,
  { id, ending }: Holder,
  only?: readonly string[],
) => sh`for key in $(owned_by ${owner}); do
${only ? sh`case ${` ${only.join(" ")} `} in *" $key "*) ;; *) continue ;; esac` : nothing}
IFS= read -r id <"$L/$key/id" || :; m undo "$id"
release "$key" ${owner} ${ending ? id : ""} 2>&1 || { m fail undo $? "$id"; exit 1; }
done`;

interface Making {
  readonly owner: string;
  /** Checksums of the bodies that several steps need. */
  readonly shared: readonly string[];
  readonly answers: Changes["answers"];
}

/** In a shell of its own, so that a time limit can end it with all its children. */
const limited = (seconds: number, body: Command) =>
  // All of the library, in a millisecond: a part of it, sent along with every step, would be megabytes here with many hosts.
  lines(
    heredoc(
      sh`given_units=$learned_units timeout -k 10 ${seconds} /bin/sh -s 2>&1 9>&-`,
      lines(sh`. ${libPath}`, body),
    ),
    // What systemd said before is old news now.
    sh`code=$? learned_units=`,
  );

/** What hardly anything but a dead disk can hold up needs no limit, which would not end that either. */
const unlimited = (body: Command) => lines(sh`(`, body, sh`) </dev/null 2>&1 9>&-; code=$?`);

function makePiece(items: readonly Item[], { owner, shared, answers }: Making): Command {
  const seconds = Math.max(...items.map(({ step }) => step.timeout ?? 300));
  const pieces = items.map(({ step, s }) => {
    const answer = answers.get(s);
    return sh`${lookFunction(word(s), step)}
step_${word(s)}() { set -e
${answer ? sh`answer=${answer}` : nothing}
${step.make}
}`;
  });
  const made = items.map(({ step, s }) => `${s}:${keyOf(step.id)}`);
  const body = lines(
    sh`S=$S/${owner} shared=${shared.join(" ")}`,
    ...pieces,
    sh`make_all ${plainPaths(items).join(" ")} ${made}`,
  );
  const quickly = items.every(({ step }) => groupOf(step) === quick && step.timeout === undefined);
  return sh`${quickly ? unlimited(body) : limited(seconds, body)}
case $code in 0) ;; 1) full_disk $K; exit 1 ;; *) m fail ${items[0]?.s ?? 0} $code; exit 1 ;; esac`;
}

function recordPiece(step: Step, s: number, owner: string): Command {
  const name = word(s);
  return sh`${lookFunction(name, step)}
save_${name}() { :
${step.save ?? nothing}
}
prior_${name}() { ${step.prior ?? sh`look_${name}`}; }
undo_${name}() { printf '%s\n' ${quoted(undoText(step))}; }
prepare_entry ${keyOf(step.id)} ${step.id} ${owner} prior_${name} save_${name} undo_${name} || { m fail ${s} record; exit 1; }`;
}

/** Those of files and folders, which can be looked at together; a name that a shell would take apart is looked at alone. */
const plainPaths = (items: readonly Item[]) =>
  items.flatMap(({ step: { bulk } }) => (bulk?.kind === "path" && /^[\w./-]+$/.test(bulk.name) ? [bulk.name] : []));

const unitsOf = (items: readonly Item[]) =>
  items.flatMap(({ step: { bulk } }) => (bulk?.kind === "unit" ? bulk.name : []));

const keysOf = (items: readonly Item[]) => items.map(({ step }) => keyOf(step.id));

/** Its owner may have gone since the look, and have taken it along. */
function claimPiece(step: Step | undefined, s: number, owner: string): Command {
  if (!step) return nothing;
  const entry = sh`$L/${keyOf(step.id)}`;
  if (!step.brought) return sh`[ -d ${entry} ] || exit ${lookAgain}; : >${entry}/owners/${owner}`;
  return lines(
    sh`[ -d ${entry} ] || ${step.brought} || exit ${lookAgain}`,
    sh`begin_entries ${keyOf(step.id)}`,
    recordPiece(step, s, owner),
    sh`enter_prepared || { m fail ${s} record; exit 1; }`,
  );
}

interface Item {
  readonly step: Step;
  readonly s: number;
}

const quickKinds: readonly BulkKind[] = ["path", "sysctl", "parameter"];
const groupOf = ({ group, bulk }: Step) => group ?? (bulk && quickKinds.includes(bulk.kind) ? quick : undefined);

/** What a unit was before does not depend on files that are made just before it. */
const recordedWith = (step: Step) => groupOf(step) ?? (step.bulk?.kind === "unit" ? quick : undefined);

/** Neighbours of which this says the same, if it says anything. */
function neighbours(items: readonly Item[], of: (step: Step) => string | undefined): Item[][] {
  const result: Item[][] = [];
  for (const item of items) {
    const last = result.at(-1);
    const group = last?.[0] && of(last[0].step);
    if (last && group !== undefined && group === of(item.step)) last.push(item);
    else result.push([item]);
  }
  return result;
}

function groupPiece(group: readonly Item[], making: Making): Command {
  const [first] = group;
  if (!first) return nothing;
  const shells = neighbours(group, (step) => (groupOf(step) === quick ? quick : undefined));
  const unrecorded = sh`{ m fail ${first.s} record; exit 1; }`;
  return lines(
    sh`begin_entries ${keysOf(group)} || ${unrecorded}; learn_paths ${plainPaths(group)}
learn_units ${unitsOf(group)}`,
    ...group.map(({ step, s }) => recordPiece(step, s, making.owner)),
    sh`learned=; enter_prepared || ${unrecorded}`,
    ...shells.map((items) => makePiece(items, making)),
  );
}

/** What holds at once or not at all is asked as part of the change; for the rest others need not wait. */
export const holdsAtOnce = ({ seconds }: Verify): boolean => seconds <= 1;

/** Seconds after which what asks hangs. */
export const longest = ({ seconds }: Verify): number => seconds + 5;

/** Asks until it holds. */
const verifyPiece = ({ test, seconds }: Verify) => sh`m begin verify
( passed() { read -r now _ </proc/uptime && now=${literal("${now%.*}")}; }
passed; end=$((now + ${seconds}))
holds() {
${test}
}
until out=$(holds 2>&1); do passed; [ "$now" -lt $end ] || { printf '%s\n' "$out"; exit 1; }; sleep 1; done
) 2>&1 9>&-
[ $? = 0 ] || { m fail verify 1; exit 1; }`;

/** Not under the lock: it changes nothing, and others may go on with the host meanwhile. */
export const verifyScript = (mark: string, verify: Verify): Command =>
  lines(head(mark, verify.test), verifyPiece(verify), sh`m end`);

export interface Changes {
  /** Indexes of the steps to make; the others that another owner made are only claimed. */
  readonly make: readonly number[];
  readonly claim: readonly number[];
  /** Ledger keys this owner holds and no longer wants. */
  readonly stale: readonly string[];
  /** What other hosts said, by index of the step that asked. */
  readonly answers: ReadonlyMap<number, Secret>;
  /** Where this was thought out for, without a look: a machine, and what was last made of the work on it. */
  readonly known?: { readonly machineId: string; readonly made: string };
}

/** What a work comes to in the end. A host keeps it, so that nobody builds on what a run that was cut off left. */
export const madeOf = ({ steps }: Work): string => keyOf(JSON.stringify(steps.map(({ id, want }) => [id, want])));

/** What a run that broke off was about to take with it at its end is not about to go any more. */
const brokenOff = sh`"$L"/*/due`;

/** One script that takes the lock, undoes what is no longer wanted, makes what differs, and looks again. */
export function makeScript(mark: string, work: Work, changes: Changes, holder: Holder): Command {
  const chosen = work.steps.flatMap((step, s) => (changes.make.includes(s) ? [{ step, s }] : []));
  const sums = chosen.flatMap(({ step }) => step.bodies?.map(({ sha256 }) => sha256) ?? []);
  const shared = sums.filter((sum, i) => sums.indexOf(sum) < i);
  const making: Making = { owner: work.owner, shared, answers: changes.answers };
  const at = sh`"$L/at."${work.owner}`;
  const { known } = changes;
  const ids = new Set(chosen.map(({ step }) => step.id));
  // Until it is started with what is made now, also by a later run: that may be what it once was started with.
  const unsettled = chosen
    .filter(({ step }) => follows(step, ids))
    .map(({ step }) => sh`gone "$L/${keyOf(step.id)}/applied"`);
  const asKnown = known
    ? sh` && says /etc/machine-id ${known.machineId} && says ${at} ${`${known.made} ${holder.id}`}`
    : nothing;
  return changing(
    mark,
    holder,
    nothing,
    sh`[ -z "$waited" ]${asKnown} || exit ${lookAgain}
gone ${at} ${brokenOff}`,
    ...changes.claim.map((s) => claimPiece(work.steps[s], s, work.owner)),
    ...(changes.stale.length > 0 ? [undoOwned(work.owner, holder, changes.stale)] : []),
    ...unsettled,
    // Neighbours of one group are recorded together before any of them is made.
    ...neighbours(chosen, recordedWith).map((group) => groupPiece(group, making)),
    sh`reload_units || { m fail reload $?; exit 1; }`,
    sh`printf '%s %s\n' ${madeOf(work)} ${holder.id} >${at}`,
    sh`unstage $S/${work.owner}; ${word(changes.stale.length > 0 ? "tidy" : "leave")} 9>&- || exit 1`,
    work.verify && holdsAtOnce(work.verify) ? verifyPiece(work.verify) : nothing,
    letGo,
    sh`m end`,
  );
}

/** One script that gives back everything an owner holds; `keep` drops the records and leaves the things as they are. */
export function undoScript(mark: string, owner: string, holder: Holder, keep: boolean): Command {
  const each = keep
    ? sh`for key in $(owned_by ${owner}); do forget_entry "$key" ${owner}; done`
    : undoOwned(owner, holder);
  const unknown = sh`gone "$L/at."${owner} ${brokenOff}`;
  return changing(
    mark,
    holder,
    sh`[ -d $K ] || { m end; exit 0; }`,
    unknown,
    each,
    sh`unstage $S/${owner}; ${word(keep ? "vacate" : "tidy")} 9>&- || exit 1`,
    letGo,
    sh`m end`,
  );
}

export interface Event {
  readonly kind: string;
  readonly words: readonly string[];
}

/** Splits the output into our marked lines and what stood between them. */
export function reader(
  mark: string,
  on: { event: (event: Event) => void; other: (line: string) => void },
): (line: string) => void {
  return (line) => {
    if (!line.startsWith(`${mark} `)) return on.other(line);
    const [kind = "", ...words] = line.slice(mark.length + 1).split(" ");
    on.event({ kind, words });
  };
}

/** A `key=value` line of a look. */
export function addWord(found: Record<string, string>, line: string): void {
  const at = line.indexOf("=");
  if (at > 0) found[line.slice(0, at)] = line.slice(at + 1);
}
