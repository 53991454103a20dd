import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { timezone } from "../../resources/config/leaves";
import { words } from "../../resources/config/words";

test("what is too long, too many or of another form is told with what to write", () => {
  const schema = z.strictObject({
    text: z.string().max(3),
    few: z.array(z.number()).max(1),
    many: z.array(z.number()).min(2),
    form: z.string().regex(/^a$/),
    shown: z
      .string()
      .regex(/^a$/)
      .meta({ examples: ["a"] }),
  });
  const tree = { text: "abcd", few: [1, 2], many: [1], form: "b", shown: "b" };
  const issues = schema.safeParse(tree).error?.issues ?? [];
  const valueAt = ([key]: readonly (string | number)[]) => tree[key as keyof typeof tree];
  assert.deepEqual(
    issues.flatMap((issue) => words(schema, issue, valueAt, () => undefined)).map(({ message }) => message),
    [
      "is longer than 3 letters; write at most 3",
      "takes at most 1 entry; remove the others",
      "needs at least 2 entries; write them as lines `- value`",
      "does not have the right form; write it as docs/cluster-yaml.md says",
      "does not have the right form; write for example a",
    ],
  );
});

test("time zones of any form that tzdata has", () => {
  const old = ["EST5EDT", "GMT0", "GMT+0", "Etc/GMT-14", "NZ-CHAT", "W-SU", "PST8PDT", "America/Port-au-Prince"];
  for (const name of [...old, ...Intl.supportedValuesOf("timeZone")]) assert.ok(timezone.safeParse(name).success, name);
  for (const name of ["../etc/passwd", "Asia//Tokyo", "5EST", "/Asia/Tokyo", "", "Asia/Tokyo/"])
    assert.ok(!timezone.safeParse(name).success, name);
});
