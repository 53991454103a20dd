import { idOf, isOurs } from "../resources/provider.js";

export interface Resource {
  urn: string;
  type: string;
  id?: string;
  custom?: boolean;
  dependencies?: string[];
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  initErrors?: string[];
  [key: string]: unknown;
}

interface Deployment {
  resources?: Resource[];
  pending_operations?: { resource: Resource; type: string }[];
  [key: string]: unknown;
}

export interface StackExport {
  deployment: Deployment;
  [key: string]: unknown;
}

const CREATING = "creating";
const DELETING = "deleting";

/** The id that the provider gives it. */
function idAs({ urn, inputs }: Resource): string {
  const [, kind = "", name = ""] = /:([^:]*)::([^:]*)$/.exec(urn) ?? [];
  return idOf(kind, { resource: { name }, ...inputs });
}

function halfMade(resource: Resource, why: string): Resource {
  // `incomplete` keeps a later change of credentials alone from being taken as reason enough not to look at the host.
  const outputs = resource.outputs && { outputs: { ...resource.outputs, incomplete: true } };
  return { ...resource, ...outputs, initErrors: [...(resource.initErrors ?? []), why] };
}

/**
 * A run that was killed leaves operations in the state of which nobody knows how far they came. Every one becomes a
 * half-made resource: the next `up` converges it (a create adopts what it finds), and `destroy` reverts it. Dropping them
 * would leave on the host what a killed create had done. What is in the state only, as the stack itself, is left to the engine.
 */
export function settlePending(state: StackExport): StackExport {
  const { resources = [], pending_operations: all = [], ...rest } = state.deployment;
  const pending = all.filter(({ resource }) => isOurs(resource));
  const known = new Set(resources.map(({ urn }) => urn));
  const interrupted = new Map(pending.map(({ resource, type }) => [resource.urn, type]));
  const marked = resources.map((resource) => {
    const type = interrupted.get(resource.urn);
    if (type === undefined) return resource;
    const { outputs } = resource;
    // It was there before, unless an earlier run had left it half made already.
    const made = outputs?.["incomplete"] !== true && { made: true };
    // Others may have been told that it goes.
    const ending = type === DELETING && { ending: true };
    const told = outputs && { outputs: { ...outputs, ...made, ...ending } };
    return halfMade({ ...resource, ...told }, `interrupted while ${type}`);
  });
  const begun = pending
    .filter(({ resource, type }) => type === CREATING && !known.has(resource.urn))
    .map(({ resource }) =>
      halfMade({ ...resource, id: idAs(resource), outputs: resource.inputs ?? {} }, "interrupted while creating"),
    );
  return { ...state, deployment: { ...rest, resources: [...marked, ...begun] } };
}
