import type { z } from "zod";
import { define, type Definition } from "./definition";
import { later } from "./later";
import type { ComponentClass } from "./resource";

const resource = later(__filename, "./resource") as () => typeof import("./resource");

/**
 * The class is made when a program first uses it: Pulumi's SDK costs a second of CPU time and 80 MB, and the provider
 * process, which needs the lifecycle only, can do without it.
 */
function onFirstUse<A extends z.ZodObject>(definition: Definition<A>): ComponentClass<A> {
  let made: ComponentClass<A> | undefined;
  const real = () => (made ??= resource().resourceClass(definition));
  const standIn: ComponentClass<A> = new Proxy(function () {} as unknown as ComponentClass<A>, {
    construct: (_, args, target) => Reflect.construct(real(), args, target === standIn ? real() : target) as object,
    get: (_, key) => (key === "definition" ? definition : (Reflect.get(real(), key) as unknown)),
  });
  return standIn;
}

/** Makes a component: its class for programs, and its lifecycle. */
export function component<A extends z.ZodObject>(definition: Definition<A>): ComponentClass<A> {
  // Its own steps are typed by A; the registry only ever hands them what A parsed.
  define(definition);
  return onFirstUse(definition);
}
