import { hostname, userInfo } from "node:os";
import type { Failure } from "./arguments";
import { definitionOf } from "./definition";
import { ended, tell } from "./engine-log";
import {
  check,
  create,
  diff,
  plan,
  read,
  refuseFixed,
  remove,
  standsOnNew,
  update,
  type Inputs,
  type World,
} from "./lifecycle";
import { endWithEngine } from "./orphan";
import { connect } from "./ssh";

/** What Pulumi's dynamic provider process calls. */
export interface DynamicProvider {
  check: (olds: Inputs, news: Inputs) => Promise<{ inputs: Inputs; failures: Failure[] }>;
  diff: (id: string, olds: Inputs, news: Inputs) => Promise<{ changes?: boolean }>;
  create: (inputs: Inputs) => Promise<{ id: string; outs: Inputs }>;
  read: (id: string, props: Inputs) => Promise<{ id: string; props: Inputs }>;
  update: (id: string, olds: Inputs, news: Inputs) => Promise<{ outs: Inputs }>;
  delete: (id: string, props: Inputs) => Promise<void>;
}

/** The same for all kinds of this process: looks of a run do not wait for its own changes. */
const controller = `${userInfo().username}@${hostname()} pid ${process.pid} since ${new Date().toISOString()}`;

/** The same for all kinds, too. */
const renewed = new Set<string>();

export const world = (): World => ({
  connect,
  tell,
  renewed,
  forgotten: (process.env["KUBEXM_FORGET"] ?? "").split(",").filter(Boolean),
  ending: process.env["KUBEXM_ENDING"] === "1",
  controller,
});

/** Anything but plain JSON would hang the call or be lost on the way. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

const urnOf = (inputs: Inputs) => {
  const resource = inputs["resource"] as { urn?: unknown } | undefined;
  return typeof resource?.urn === "string" ? resource.urn : "";
};

let atWork = 0;
endWithEngine(() => atWork > 0);

async function working<T>(inputs: Inputs, work: Promise<T>): Promise<T> {
  atWork++;
  try {
    return await work.finally(() => ended(urnOf(inputs)));
  } finally {
    atWork--;
  }
}

const shown = new Map<string, string>();

/** `up` shows progress instead of the plan. */
const planWanted = () => process.env["KUBEXM_PLAN"] !== "0";

export function forKind(kind: string): DynamicProvider {
  const definition = definitionOf(kind);
  const here = world();
  const showPlan = (olds: Inputs | undefined, news: Inputs) => {
    const text = planWanted() ? plan(definition, olds, news).join("\n") : "";
    const urn = urnOf(news);
    // The engine asks for a diff twice when it refreshes first.
    if (text !== "" && shown.get(urn) !== text) tell(urn, text, "info");
    shown.set(urn, text);
  };
  return {
    check: (olds, news) => {
      const first = olds["resource"] === undefined;
      const result = check(definition, first ? undefined : olds, news);
      if (first && result.failures.length === 0) showPlan(undefined, result.inputs);
      return Promise.resolve(plain(result));
    },
    diff: (_id, olds, news) => {
      refuseFixed(definition, olds, news);
      showPlan(olds, news);
      return Promise.resolve(standsOnNew(definition, here, olds) ? { changes: true } : diff(olds));
    },
    create: async (inputs) => plain(await working(inputs, create(definition, here, inputs))),
    read: async (id, props) => ({ id, props: plain(await read(definition, here, props)) }),
    update: async (_id, olds, news) => plain(await working(news, update(definition, here, olds, news))),
    delete: (_id, props) => working(props, remove(definition, here, props)),
  };
}
