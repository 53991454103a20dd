/** Random numbers that can be had again: KUBEXM_TEST_SEED takes the seed that a failed run told. */
export interface Seeded {
  readonly seed: number;
  /** An integer from 0 to just below `limit`. */
  below(limit: number): number;
}

export function seeded(what: string): Seeded {
  const told = process.env["KUBEXM_TEST_SEED"];
  const seed = told === undefined ? Date.now() % 1e9 : Number(told);
  console.log(`${what}: KUBEXM_TEST_SEED=${seed}`);
  let state = seed;
  return {
    seed,
    below: (limit) => {
      // mulberry32
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
    },
  };
}
