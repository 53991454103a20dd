/** The first `1.2.3` (or `1.2`) in a text as numbers. */
export function parseVersion(text: string): number[] | undefined {
  return /(\d+)\.(\d+)(?:\.(\d+))?/
    .exec(text)
    ?.slice(1)
    .map((part: string | undefined) => Number(part ?? 0));
}

/** Whether the version named in `text` is at least `least`; false when there is none. */
export function atLeast(text: string, least: string): boolean {
  const have = parseVersion(text);
  const need = parseVersion(least) ?? [];
  if (have === undefined) return false;
  const differs = need.findIndex((part, i) => part !== have[i]);
  return differs === -1 || (have[differs] ?? 0) > (need[differs] ?? 0);
}
